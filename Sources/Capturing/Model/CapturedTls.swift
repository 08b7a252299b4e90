public import HttpWare

/// TLS on the two connections of an exchange; `nil` for a connection without TLS.
public struct CapturedTls: Sendable, Equatable {
    public var client: TlsFacts?
    public var server: TlsFacts?

    public init(client: TlsFacts? = nil, server: TlsFacts? = nil) {
        self.client = client
        self.server = server
    }

    /// The memory counted for the capture with that number. The first capture of a connection is charged for all.
    func memory(for id: Int) -> Int { (client?.memory(for: id) ?? 0) + (server?.memory(for: id) ?? 0) }
}
