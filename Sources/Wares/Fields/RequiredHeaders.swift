public import HttpWare

/// Requires header fields to be present, or to match a pattern; answers 400 otherwise and names them. RFC 9457.
///
/// If a field has several lines, each line must match.
public struct RequiredHeaders: Middleware {
    /// The required fields, each with the pattern of its values; `nil` accepts any value.
    public var headers: [(name: FieldName, form: Pattern?)]
    /// The status of refusals.
    public var status: HttpStatus

    public init(_ headers: [(name: FieldName, form: Pattern?)], status: HttpStatus = .badRequest) {
        self.headers = headers
        self.status = status
    }

    /// Requires these fields with any value: `RequiredHeaders("X-App", "X-Device")`.
    public init(_ names: FieldName..., status: HttpStatus = .badRequest) {
        self.init(names.map { ($0, nil) }, status: status)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        for (name, form) in headers {
            guard request.fields.contains(name) else { return refuse(request, exchange) }
            if let form, !hasForm(request.fields.values(of: name), form, exchange) { return refuse(request, exchange) }
            request.fields.removeTwins(of: name)
        }
        return .pass
    }

    /// If the pattern reaches its limit, the value does not match: this ware fails closed.
    private func hasForm(_ values: [String], _ form: Pattern, _ exchange: Exchange) -> Bool {
        values.allSatisfy { value in
            var value = value
            return value.withUTF8 {
                (try? form.matches(UnsafeRawBufferPointer($0), within: &exchange.patternTime)) ?? false
            }
        }
    }

    private func refuse(_ request: HttpRequest, _ exchange: Exchange) -> Verdict {
        let missing = headers.filter { !request.fields.contains($0.name) }.map(\.name.text)
        let wrong = headers.filter { name, form in
            request.fields.contains(name)
                && form.map { !hasForm(request.fields.values(of: name), $0, exchange) } ?? false
        }.map(\.name.text)
        var parts: [String] = []
        if !missing.isEmpty { parts.append("missing fields: \(missing.joined(separator: ", "))") }
        if !wrong.isEmpty { parts.append("invalid fields: \(wrong.joined(separator: ", "))") }
        return .abort(with: .problem(status, parts.joined(separator: "; ")))
    }
}

extension RequiredHeaders: Safeguard {}

extension RequiredHeaders: ConfigurableWare {
    public static let name: WareName = "requiredHeaders"
    public static let about = WareAbout(
        "Requires header fields to be present, or to match a pattern; answers 400 otherwise and names them.",
        source: "RFC 9457",
        example: #"""
            - requiredHeaders: { headers: [X-Api-Version] }
            - requiredHeaders: { headers: { X-Tenant: "^[a-z]{3,12}$" }, status: 422 }
            """#,
        details: #"""
            If a field has several lines, each line must match the pattern.
            """#,
        otherNames: ["validate", "requestValidation"])

    public init(options: inout OptionsReader) {
        var headers: OptionMap<FieldName, Pattern?> = [:]
        self.init([])
        options.read(
            "headers", intoNames: &headers,
            doc: "required fields; in a map, each value of the field must match the expression")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "status of the response to refused requests")
        options.require("headers")
        options.refuseEmpty("headers", "write [X-One, X-Two] or X-One: \"^expression$\"")
        self.headers = headers.map { ($0.key, $0.value) }
    }
}
