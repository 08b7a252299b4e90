/// The compression that a handshake agreed on: `Sec-WebSocket-Extensions` of its response. RFC 7692 §7.1.
public struct WebSocketExtensions: Sendable, Equatable {
    /// Whether `permessage-deflate` is in use.
    public var isDeflated = false
    /// Whether the client's messages, and the server's, are compressed without reference to earlier ones.
    public var clientForgets = false
    public var serverForgets = false

    /// Reads the field's values.
    public init(_ values: [String]) {
        for value in values {
            for member in value.split(separator: ",") {
                let parts = member.split(separator: ";").map { part in
                    String(part.prefix { $0 != "=" }.filter { $0 != " " && $0 != "\t" }).lowercased()
                }
                guard parts.first == "permessage-deflate" else { continue }
                isDeflated = true
                clientForgets = parts.contains("client_no_context_takeover")
                serverForgets = parts.contains("server_no_context_takeover")
                return
            }
        }
    }
}
