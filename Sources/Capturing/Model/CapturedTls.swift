public import HttpWare

/// TLS on the two connections of an exchange; `nil` where there is none.
public struct CapturedTls: Sendable, Equatable {
    public var client: TlsFacts?
    public var server: TlsFacts?

    public init(client: TlsFacts? = nil, server: TlsFacts? = nil) {
        self.client = client
        self.server = server
    }

    /// The memory that is counted for the capture with that number: the first of a connection pays for all.
    func memory(for id: Int) -> Int { (client?.memory(for: id) ?? 0) + (server?.memory(for: id) ?? 0) }
}
