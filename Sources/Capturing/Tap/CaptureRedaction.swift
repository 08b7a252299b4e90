import HttpWare

/// Masks what must not be kept, before anything of it is.
struct CaptureRedaction {
    private let redacted: [String]
    /// What the gateway itself put into the request.
    private let injected: [String]
    private let showsAll: Bool

    init(_ settings: CaptureSettings, _ exchange: Exchange? = nil) {
        redacted = settings.redacted.map { $0.text.lowercased() }
        injected = exchange?.injectedFields.map { $0.text.lowercased() } ?? []
        showsAll = settings.showsAll
    }

    /// The lines of a header or trailer section.
    func fields(_ fields: HttpFields) -> [CapturedMessage.Field] {
        fields.map { name, value in
            let lower = name.lowercased()
            if injected.contains(lower) || redacted.contains(lower) {
                return CapturedMessage.Field(name, masked(value))
            }
            return CapturedMessage.Field(name, value)
        }
    }

    /// The scheme of credentials and the names of cookies tell what they are for.
    private func masked(_ value: String) -> String {
        guard let space = value.firstIndex(of: " "),
            value[..<space].utf8.allSatisfy({ $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a })
        else { return Redaction.mark }
        return value[...space] + Redaction.mark
    }

    /// The target URI.
    func url(of request: HttpRequest) -> String {
        let url = String(decoding: request.targetUri(), as: UTF8.self)
        return showsAll ? url : Redaction.target(url)
    }
}
