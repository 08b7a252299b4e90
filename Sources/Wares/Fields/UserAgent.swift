public import HttpWare

/// Names the calling program to the origin server. RFC 9110 §10.1.5.
///
/// | option  | type                              | default    | allowed |
/// |---------|-----------------------------------|------------|---------|
/// | `value` | template                          | required   | product tokens and comments, such as `app/1.4` |
/// | `mode`  | `ifAbsent`, `append` or `replace` | `ifAbsent` |         |
public struct UserAgent: Middleware {
    /// What becomes of the request's own `User-Agent`.
    public enum Mode: String, OptionWord {
        case ifAbsent, append, replace
    }

    public var value: Template
    public var mode: Mode
    private var line: FieldLine?

    /// Names a program. Throws when the value cannot stand in a field line.
    public init(_ value: String, mode: Mode = .ifAbsent) throws {
        line = try FieldLine(.userAgent, value)
        self.value = try Template(optionText: value)
        self.mode = mode
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if mode == .ifAbsent && request.fields.contains(.userAgent) { return .pass }
        let received = mode == .append ? request.fields[.userAgent] : nil
        if received == nil, let line {
            request.fields.set(line)
            return .pass
        }
        let own = value.text(request, in: exchange)
        do throws(InvalidFieldValue) {
            try request.fields.set(.userAgent, to: received.map { $0.isEmpty ? own : "\($0) \(own)" } ?? own)
            return .pass
        } catch {
            return .abort(with: .problem(.badRequest, "\(error)"))
        }
    }
}

extension UserAgent: ConfigurableWare {
    public static let name: WareName = "userAgent"
    public static let about = WareAbout(
        "Names the calling program to the origin server.", source: "RFC 9110 §10.1.5",
        example: #"""
            - userAgent: { value: "example-app/1.4", mode: append }
            """#)

    public init(options: inout OptionsReader) {
        var value: Template?
        mode = .ifAbsent
        options.read("value", into: &value, doc: "product tokens and comments, such as app/1.4")
        options.read("mode", into: &mode, doc: "what becomes of the request's own User-Agent")
        options.require("value")
        self.value = value ?? ""
        guard let value else { return }
        if value.segments.isEmpty { options.fail(at: "value", "is empty; write a product such as app/1.4") }
        if case .fixed(let line) = FieldEdits.value(.userAgent, value, "value", &options) { self.line = line }
    }
}
