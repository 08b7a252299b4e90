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
        if target.isAsReceived { return target.appendWrittenPathAndQuery(to: &uri) }
        let changed = upstreamTargetBytes
        if changed.first == 0x2f { uri += changed }
    }
}

extension RequestTarget {
    fileprivate func append(_ range: Range<Int>, to uri: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { uri.append(contentsOf: UnsafeBufferPointer(rebasing: $0[range])) }
    }

    /// Appends the path and query in the received target; nothing for CONNECT and for `*`, which have neither (RFC 9112 §3.3). A target
    /// that is neither a path nor a URI was refused. Only a slash stands for it: its bytes must not continue the host's name.
    fileprivate func appendWrittenPathAndQuery(to uri: inout [UInt8]) {
        let text = bytes[received.range]
        switch form {
        case .authority, .asterisk: break
        case .origin where text.first == 0x2f, .absolute where text.first == 0x2f:
            append(received.range, to: &uri)
        case .origin: if !text.isEmpty { uri.append(0x2f) }
        case .absolute:
            guard host.count > 0, let scheme = text.firstIndex(of: 0x2f), scheme + 2 <= text.endIndex else {
                return uri.append(0x2f)
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
