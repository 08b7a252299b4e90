extension Exchange {
    /// The target URI of the request as the client wrote it. If the head could not be read so far that the request names a host,
    /// the host is that of the tunnel, or of a reverse listener.
    public func writtenUri(of request: HttpRequest) -> String {
        if let tunnel = connection.tunnel {
            return request.writtenUri(
                otherwise: Authority(host: tunnel.host, port: tunnel.port), isSecure: connection.isSecure)
        }
        return request.writtenUri(otherwise: isForward ? nil : listenerAuthority, isSecure: connection.isSecure)
    }

    private var listenerAuthority: Authority? {
        guard case .ip(let address, let port)? = connection.local else { return nil }
        return Authority(host: "\(address)".contains(":") ? "[\(address)]" : "\(address)", port: port)
    }
}
