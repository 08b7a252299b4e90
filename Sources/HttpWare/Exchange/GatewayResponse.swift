/// The responses that the gateway itself makes: short problem details that name the fault. RFC 9457, RFC 9209.
enum GatewayResponse {
    /// Makes the response for an error. `late` is the status if the origin server took too long; `nil` means 504. A client that chose
    /// the origin server itself, through a proxy, learns what is wrong with the server's certificate, and that the next proxy refused.
    static func make(for error: GatewayError, late: HttpStatus? = nil, isForward: Bool = false) -> HttpResponse {
        let status = error.status == .gatewayTimeout ? late ?? error.status : error.status
        let isOfWay = [.tlsCertificateError, .tlsProtocolError, .tlsAlertReceived, .proxyRefused].contains(error.fault)
        // Details of upstream errors would reveal internals; the client learns only the fault.
        let isTold = error.side != .upstream || isForward && isOfWay
        var response = HttpResponse.problem(
            status, isTold ? error.reason : reason(of: error.fault, status), fault: error.proxyStatusName)
        response.fields.setOwn(.proxyStatus, "httpware; error=\(error.proxyStatusName)")
        if status == .methodNotAllowed {
            response.fields.setOwn(.allow, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE")
        }
        if status == .serviceUnavailable { response.fields.setOwn(.retryAfter, "1") }
        return response
    }

    private static func reason(of fault: GatewayError.Fault, _ status: HttpStatus) -> String {
        switch status {
        case _ where fault.isUnreachable: "the server behind this host cannot be reached"
        case .gatewayTimeout: "the server behind this host took too long"
        case .serviceUnavailable: "the server behind this host takes no more requests at the moment"
        default: "the server behind this host gave no valid answer"
        }
    }

    /// Answers TRACE as its final recipient: the request as received, without secret fields. RFC 9110 §9.3.8.
    static func trace(_ request: HttpRequest) -> HttpResponse {
        let text = request.receivedHead(without: [.authorization, .cookie, .proxyAuthorization])
        return HttpResponse(.ok, fields: ["Content-Type": "message/http"], content: .text(text))
    }

    /// Answers OPTIONS as its final recipient. RFC 9110 §9.3.7.
    static func options() -> HttpResponse {
        HttpResponse(.ok, fields: ["Allow": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE"])
    }
}
