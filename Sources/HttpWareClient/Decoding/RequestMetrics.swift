public import HttpWare

/// How long each step of a request took. A step that did not happen is zero: a connection that served before has no `connect`, a stored
/// response only a `total`. Of a request that was tried more than once, the steps are those of the last attempt.
public struct RequestMetrics: Sendable, Equatable {
    /// The host's addresses were looked up.
    public let resolve: Duration
    /// The TCP connection was made.
    public let connect: Duration
    /// The TLS handshake was made.
    public let handshake: Duration
    /// The request was sent.
    public let send: Duration
    /// From the end of the request to the first byte of the response.
    public let wait: Duration
    /// From the first byte of the response to its last.
    public let receive: Duration
    /// The whole exchange, holds, retries and other waits of wares included; redirects before it are not.
    public let total: Duration
    /// Bytes of the request's content.
    public let sentBytes: Int
    /// Bytes of the response's content, after codings were taken off.
    public let receivedBytes: Int
    /// How many connections were tried.
    public let attempts: Int
    /// The connection had served another request before.
    public let reusedConnection: Bool

    /// What a record says.
    public init(_ record: ExchangeRecord) {
        func step(_ start: Int64, _ end: Int64) -> Duration {
            start > 0 && end > start ? .nanoseconds(end - start) : .zero
        }
        resolve = step(record.resolveStarted, record.connectStarted)
        connect = step(record.connectStarted, record.connected)
        handshake = step(record.connected, record.secured)
        send = step(record.sendStarted, record.requestSent)
        wait = step(record.requestSent, record.firstByte)
        receive = step(record.firstByte, record.ended)
        total = step(record.started, record.ended)
        sentBytes = record.requestBytes
        receivedBytes = record.responseBytes
        attempts = record.attempts
        reusedConnection = record.isReused
    }
}
