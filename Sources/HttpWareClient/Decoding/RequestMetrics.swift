public import HttpWare

/// The duration of each step of a request. A step that did not happen is zero: a reused connection has no `connect`, and a stored
/// response has only a `total`. If there were several attempts, the steps are those of the last one.
public struct RequestMetrics: Sendable, Equatable {
    /// The lookup of the host's addresses.
    public let resolve: Duration
    /// The TCP connection.
    public let connect: Duration
    /// The TLS handshake.
    public let handshake: Duration
    /// The transfer of the request.
    public let send: Duration
    /// The time from the end of the request to the first byte of the response.
    public let wait: Duration
    /// The time from the first byte of the response to its last byte.
    public let receive: Duration
    /// The whole exchange, including holds, retries and other waits of wares. Earlier redirects are not included.
    public let total: Duration
    /// The bytes of the request's content.
    public let sentBytes: Int
    /// The bytes of the response's content after decoding.
    public let receivedBytes: Int
    /// The number of connection attempts.
    public let attempts: Int
    /// Whether the connection had served another request before.
    public let reusedConnection: Bool

    /// The metrics of a record.
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
