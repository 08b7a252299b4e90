extension HttpRequest {
    /// The target URI with its path and query as the client wrote them, for showing and repeating the request. If a ware has
    /// changed the target, as it goes upstream. Scheme and host are in their normal form; the URI begins with `http:///` if no
    /// host is known.
    public var writtenUri: String { writtenUri() }

    /// The same. If the request names no host, that of the tunnel or of the listener is taken.
    func writtenUri(otherwise authority: Authority? = nil, isSecure: Bool = false) -> String {
        let host = target.host
        let isSecure = host.count > 0 ? target.isSecure : isSecure
        let port = host.count > 0 ? target.port : authority?.port
        var uri = Array((isSecure ? "https://" : "http://").utf8)
        if host.count > 0 { uri += target.bytes[host.range] } else { uri += (authority?.host ?? "").utf8 }
        if let port, port != (isSecure ? 443 : 80) { uri += ":\(port)".utf8 }
        uri += target.isAsReceived ? target.writtenPathAndQuery : upstreamTargetBytes
        return ReceivedText.target(uri)
    }
}

extension RequestTarget {
    /// The path and query in the received target; empty for CONNECT and for `*`, which have neither. RFC 9112 §3.3.
    fileprivate var writtenPathAndQuery: [UInt8] {
        let text = bytes[received.range]
        switch form {
        case .authority, .asterisk: return []
        // A target that could not be read may begin with anything.
        case .origin: return text.isEmpty || text.first == 0x2f ? Array(text) : [0x2f] + text
        case .absolute:
            guard let scheme = text.firstIndex(of: 0x2f), scheme + 2 <= text.endIndex else { return Array(text) }
            guard let start = text[(scheme + 2)...].firstIndex(where: { $0 == 0x2f || $0 == 0x3f }) else {
                return path == upstreamPath && bytes[path.range].first == 0x2a ? [] : [0x2f]
            }
            return text[start] == 0x3f ? [0x2f] + text[start...] : Array(text[start...])
        }
    }
}
