public import HttpWare

/// Masks what must not be kept, before anything of it is.
public struct CaptureRedaction: Sendable {
    private let redacted: [String]
    /// What the gateway itself put into the request.
    private let injected: [String]
    let showsAll: Bool

    /// What is masked by settings; of an exchange, also what the gateway put into its request.
    public init(_ settings: CaptureSettings, _ exchange: Exchange? = nil) {
        redacted = settings.redacted.map { $0.text.lowercased() }
        injected = exchange?.injectedFields.map { $0.text.lowercased() } ?? []
        showsAll = settings.showsAll
    }

    /// The lines of a header or trailer section.
    public func shown(_ fields: HttpFields) -> [CapturedMessage.Field] { self.fields(fields).shown }

    /// The same, and what was masked in them.
    func fields(_ fields: HttpFields) -> (shown: [CapturedMessage.Field], secrets: [CapturedSecrets.Value]) {
        var shown: [CapturedMessage.Field] = []
        var secrets: [CapturedSecrets.Value] = []
        for (name, value) in fields {
            let lower = name.lowercased()
            let isInjected = injected.contains(lower)
            if isInjected || redacted.contains(lower) {
                // The gateway's own credentials are kept nowhere.
                if !isInjected { secrets.append(CapturedSecrets.Value(place: shown.count, text: value)) }
                shown.append(CapturedMessage.Field(name, CaptureRedaction.masked(value)))
            } else {
                shown.append(CapturedMessage.Field(name, value))
            }
        }
        return (shown, secrets)
    }

    /// Masks the fields of a message that another program captured.
    func mask(_ message: inout CapturedMessage) -> [CapturedSecrets.Value] {
        var secrets: [CapturedSecrets.Value] = []
        for (place, field) in message.fields.enumerated() where redacted.contains(field.name.lowercased()) {
            secrets.append(CapturedSecrets.Value(place: place, text: field.value))
            message.fields[place].value = CaptureRedaction.masked(field.value)
        }
        return secrets
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
    public func url(_ url: String) -> String { showsAll ? url : Redaction.target(url) }
}
