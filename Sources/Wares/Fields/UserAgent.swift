public import HttpWare

/// Sets the `User-Agent` of requests, adds to it, or supplies one if it is missing. RFC 9110 §10.1.5.
public struct UserAgent: Middleware {
    /// How the client's `User-Agent` is treated.
    public enum Mode: String, OptionWord {
        /// The value is set only if the request has no `User-Agent`.
        case ifAbsent
        /// The value is added after that of the client.
        case append
        /// The value replaces that of the client.
        case replace
    }

    /// Product tokens and comments, such as `app/1.4`.
    public var value: Template
    /// How the client's `User-Agent` is treated.
    public var mode: Mode
    private var line: FieldLine?

    /// The default treatment of the client's `User-Agent`.
    public static let usualMode = Mode.ifAbsent

    /// Throws if the value is invalid in a field.
    public init(_ value: String, mode: Mode = usualMode) throws {
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
        "Sets the `User-Agent` of requests, adds to it, or supplies one if it is missing.", source: "RFC 9110 §10.1.5",
        example: #"""
            - userAgent: { value: "example-app/1.4", mode: append }
            """#)

    public init(options: inout OptionsReader) {
        var value: Template?
        mode = UserAgent.usualMode
        options.read("value", into: &value, doc: "product tokens and comments for User-Agent, such as app/1.4")
        options.read(
            "mode", into: &mode, doc: "how the client's User-Agent is treated: kept, extended by the value, or replaced"
        )
        options.require("value")
        self.value = value ?? ""
        guard let value else { return }
        if value.segments.isEmpty { options.fail(at: "value", "is empty; write a product such as app/1.4") }
        if case .fixed(let line) = FieldEdits.value(.userAgent, value, "value", &options) { self.line = line }
    }
}
