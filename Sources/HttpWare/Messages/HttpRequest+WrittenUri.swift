extension HttpRequest {
    /// The target URI with its path and query as the client wrote them, for showing and repeating the request. If a ware has
    /// changed the target, as it goes upstream. Scheme and host are in their normal form; the URI begins with `http:///` if no
    /// host is known.
    public var writtenUri: String { writtenUri() }

    /// The same. If the request names no host, that of the tunnel or of the listener is taken.
    func writtenUri(otherwise authority: Authority? = nil, isSecure: Bool = false) -> String {
        var uri: [UInt8] = []
        appendWrittenUri(to: &uri, otherwise: authority, isSecure: isSecure)
        return ReceivedText.target(uri)
    }

    /// Appends the same as bytes, of which `ReceivedText.target` makes the text.
    func appendWrittenUri(to uri: inout [UInt8], otherwise authority: @autoclosure () -> Authority?, isSecure: Bool) {
        let host = target.host
        let isSecure = host.count > 0 ? target.isSecure : isSecure
        uri += (isSecure ? "https://" : "http://").utf8
        let port: UInt16?
        if host.count > 0 {
            port = target.port
            target.append(host.range, to: &uri)
        } else {
            let authority = authority()
            port = authority?.port
            uri += (authority?.host ?? "").utf8
        }
        if let port, port != (isSecure ? 443 : 80) { uri += ":\(port)".utf8 }
        if target.isAsReceived { target.appendWrittenPathAndQuery(to: &uri) } else { uri += upstreamTargetBytes }
    }
}

extension RequestTarget {
    fileprivate func append(_ range: Range<Int>, to uri: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { uri.append(contentsOf: UnsafeBufferPointer(rebasing: $0[range])) }
    }

    /// Appends the path and query in the received target; nothing for CONNECT and for `*`, which have neither. RFC 9112 §3.3.
    fileprivate func appendWrittenPathAndQuery(to uri: inout [UInt8]) {
        let range = received.range
        switch form {
        case .authority, .asterisk: break
        // A target that could not be read may begin with anything.
        case .origin:
            if !range.isEmpty, bytes[range.lowerBound] != 0x2f { uri.append(0x2f) }
            append(range, to: &uri)
        case .absolute:
            let text = bytes[range]
            guard let scheme = text.firstIndex(of: 0x2f), scheme + 2 <= text.endIndex else {
                return append(range, to: &uri)
            }
            guard let start = text[(scheme + 2)...].firstIndex(where: { $0 == 0x2f || $0 == 0x3f }) else {
                if path != upstreamPath || bytes[path.range].first != 0x2a { uri.append(0x2f) }
                return
            }
            if text[start] == 0x3f { uri.append(0x2f) }
            append(start..<text.endIndex, to: &uri)
        }
    }
}
