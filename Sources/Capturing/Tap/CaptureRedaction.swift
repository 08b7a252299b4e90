public import HttpWare

/// Masks what must not be kept, before anything of it is.
public struct CaptureRedaction: Sendable {
    private let redacted: [String]
    /// What the gateway itself put into the request.
    private let injected: [String]
    private let showsAll: Bool

    /// What is masked by settings; of an exchange, also what the gateway put into its request.
    public init(_ settings: CaptureSettings, _ exchange: Exchange? = nil) {
        redacted = settings.redacted.map { $0.text.lowercased() }
        injected = exchange?.injectedFields.map { $0.text.lowercased() } ?? []
        showsAll = settings.showsAll
    }

    /// The lines of a header or trailer section.
    public func fields(_ fields: HttpFields) -> [CapturedMessage.Field] {
        fields.map { name, value in
            let lower = name.lowercased()
            if injected.contains(lower) || redacted.contains(lower) {
                return CapturedMessage.Field(name, CaptureRedaction.masked(value))
            }
            return CapturedMessage.Field(name, value)
        }
    }

    /// The scheme of credentials and the names of cookies tell what they are for.
    static func masked(_ value: String) -> String {
        guard let space = value.firstIndex(of: " "),
            value[..<space].utf8.allSatisfy({ $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a })
        else { return Redaction.mark }
        return value[...space] + Redaction.mark
    }

    /// The target URI.
    public func url(of request: HttpRequest) -> String { url(String(decoding: request.targetUri(), as: UTF8.self)) }

    /// The same for a URI.
    public func url(_ url: String) -> String {
        showsAll ? url : Redaction.target(url)
    }
}
