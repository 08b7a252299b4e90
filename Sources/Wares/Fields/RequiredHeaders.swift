public import HttpWare

/// Refuses a request that lacks a field, or whose field has another form, and says which. RFC 9457.
///
/// A field of several lines has the form when each line has it.
///
/// | option    | type                                                     | default  | allowed   |
/// |-----------|----------------------------------------------------------|----------|-----------|
/// | `headers` | list of field names, or map of field name to regular expression | required | one or more |
/// | `status`  | status                                                   | `400`    | 400 … 599 |
public struct RequiredHeaders: Middleware {
    /// The fields that have to be there, with the form of their values where one is asked for.
    public var headers: [(name: FieldName, form: Pattern?)]
    public var status: HttpStatus

    public init(_ headers: [(name: FieldName, form: Pattern?)], status: HttpStatus = .badRequest) {
        self.headers = headers
        self.status = status
    }

    /// Asks for these fields, whatever their values: `RequiredHeaders("X-App", "X-Device")`.
    public init(_ names: FieldName..., status: HttpStatus = .badRequest) {
        self.init(names.map { ($0, nil) }, status: status)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        for (name, form) in headers {
            guard request.fields.contains(name) else { return refuse(request) }
            if let form, !hasForm(request.fields.values(of: name), form) { return refuse(request) }
            request.fields.removeTwins(of: name)
        }
        return .pass
    }

    /// A value that makes the pattern reach its limit does not have the form: this ware fails closed.
    private func hasForm(_ values: [String], _ form: Pattern) -> Bool {
        values.allSatisfy { value in
            var value = value
            return value.withUTF8 { (try? form.matches(UnsafeRawBufferPointer($0))) ?? false }
        }
    }

    private func refuse(_ request: HttpRequest) -> Verdict {
        let missing = headers.filter { !request.fields.contains($0.name) }.map(\.name.text)
        let wrong = headers.filter { name, form in
            request.fields.contains(name) && form.map { !hasForm(request.fields.values(of: name), $0) } ?? false
        }.map(\.name.text)
        var parts: [String] = []
        if !missing.isEmpty { parts.append("the request lacks \(missing.joined(separator: ", "))") }
        if !wrong.isEmpty { parts.append("\(wrong.joined(separator: ", ")) does not have the form asked for") }
        return .abort(with: .problem(status, parts.joined(separator: "; ")))
    }
}

extension RequiredHeaders: ConfigurableWare {
    public static let name: WareName = "requiredHeaders"
    public static let about = WareAbout(
        "Refuses a request that lacks a field, or whose field has another form, and says which.", source: "RFC 9457",
        example: #"""
            - requiredHeaders: { headers: [X-Api-Version] }
            - requiredHeaders: { headers: { X-Tenant: "^[a-z]{3,12}$" }, status: 422 }
            """#,
        details: #"""
            A field of several lines has the form when each line has it.
            """#)

    public init(options: inout OptionsReader) {
        var headers: OptionMap<FieldName, Pattern?> = [:]
        self.init([])
        options.read(
            "headers", intoNames: &headers,
            doc: "one or more that must be there, and match the expression where one is given")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "of the refusal")
        options.require("headers")
        if options.isGiven("headers"), options.isEmpty("headers") {
            options.fail(at: "headers", "names no field; write [X-One, X-Two] or X-One: \"^expression$\"")
        }
        self.headers = headers.map { ($0.key, $0.value) }
    }
}
