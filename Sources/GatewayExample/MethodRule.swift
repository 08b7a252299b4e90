import HttpWareGateway

/// Restricts the methods of requests; answers 405 (Method Not Allowed, RFC 9110 §15.5.6) otherwise.
struct MethodRule: Middleware {
    /// The allowed methods.
    var allow: [HttpMethod] = [.get, .head]

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        if allow.contains(request.method) { return .pass }
        var refusal = HttpResponse.problem(.methodNotAllowed, "this method is not allowed here")
        try refusal.fields.set(.allow, to: allow.map(\.name).joined(separator: ", "))
        return .abort(with: refusal)
    }
}

extension MethodRule: ConfigurableWare {
    static let name: WareName = "methodRule"
    static let about = WareAbout(
        "Restricts the methods of requests; answers 405 otherwise.", source: "RFC 9110 §15.5.6",
        example: """
            - methodRule: { allow: [GET, HEAD] }
            """)

    init(options: inout OptionsReader) {
        self.init()
        options.read("allow", into: &allow, doc: "methods of the requests that pass; all others are refused with 405")
        options.refuseEmpty("allow", "write such as [GET, HEAD]")
    }
}
