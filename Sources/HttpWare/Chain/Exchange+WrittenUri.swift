extension Exchange {
    /// The target URI of the request as the client wrote it. If the head could not be read so far that the request names a host,
    /// the host is that of the tunnel, or of a reverse listener.
    public func writtenUri(of request: HttpRequest) -> String {
        var uri: [UInt8] = []
        appendWrittenUri(of: request, to: &uri)
        return ReceivedText.target(uri)
    }

    /// Appends the same as bytes, of which `ReceivedText.target` makes the text.
    public func appendWrittenUri(of request: HttpRequest, to uri: inout [UInt8]) {
        if let tunnel = connection.tunnel {
            return request.appendWrittenUri(
                to: &uri, otherwise: Authority(host: tunnel.host, port: tunnel.port), isSecure: connection.isSecure)
        }
        request.appendWrittenUri(
            to: &uri, otherwise: isForward ? nil : listenerAuthority, isSecure: connection.isSecure)
    }

    private var listenerAuthority: Authority? {
        guard case .ip(let address, let port)? = connection.local else { return nil }
        return Authority(host: "\(address)".contains(":") ? "[\(address)]" : "\(address)", port: port)
    }
}
