/// The protocol that a client speaks in a tunnel, detected by its first bytes.
enum TunnelProtocol: Equatable {
    /// More bytes are needed to know.
    case unknown
    /// TLS, with the host name in lower case that the client asks for, if it names one.
    case tls(serverName: String?)
    /// A request of HTTP/1, or the preface of HTTP/2, without TLS.
    case http
    /// Another protocol.
    case other

    /// The maximum number of bytes examined.
    static let most = ClientHello.longest + 4 * 1024
    /// The maximum length of a method: RFC 9110 has none longer than 9, WebDAV none longer than 16.
    private static let longestMethod = 32

    /// Detects the protocol from the first bytes of a tunnel.
    static func of(_ bytes: [UInt8]) -> TunnelProtocol {
        var hello = ClientHello.Scan()
        return of(bytes, &hello)
    }

    /// Detects the protocol from the bytes so far. `hello` keeps what was parsed of them before.
    static func of(_ bytes: [UInt8], _ hello: inout ClientHello.Scan) -> TunnelProtocol {
        switch hello.read(bytes) {
        case .incomplete: return bytes.count < most ? .unknown : .tls(serverName: nil)
        case .whole(let name): return .tls(serverName: name)
        case .notTls: break
        }
        // RFC 9112 §3: method, space, target. Other protocols have words and spaces, too, but no path or URI after them.
        let method = bytes.prefix { ByteClass.isToken($0) }
        guard !method.isEmpty, method.count <= longestMethod else { return .other }
        guard method.count < bytes.count else { return .unknown }
        guard bytes[method.count] == 0x20 else { return .other }
        let target = bytes[(method.count + 1)...].prefix(8)
        guard let first = target.first else { return .unknown }
        if first == 0x2f || first == 0x2a { return .http }
        // An absolute URI, or the target of a CONNECT, which HTTP then refuses.
        let isConnect = method.elementsEqual("CONNECT".utf8)
        if isConnect, ByteClass.isHost(first) || first == 0x5b { return .http }
        for scheme in ["http://", "https://"]
        where Array(scheme.utf8).starts(with: target.prefix(scheme.utf8.count).map(ByteClass.lower)) {
            return target.count >= scheme.utf8.count ? .http : .unknown
        }
        return .other
    }
}
