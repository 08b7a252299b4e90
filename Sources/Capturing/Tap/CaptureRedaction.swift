public import HttpWare

/// Masks what must not be kept, before anything of it is.
public struct CaptureRedaction: Sendable {
    /// In lower case.
    private let redacted: [[UInt8]]
    /// What the gateway itself put into the request.
    private var injected: [[UInt8]] = []
    let showsAll: Bool

    /// What is masked by settings; of an exchange, also what the gateway put into its request.
    public init(_ settings: CaptureSettings, _ exchange: Exchange? = nil) {
        redacted = settings.redacted.map { Array($0.text.lowercased().utf8) }
        showsAll = settings.showsAll
        if let exchange { add(exchange) }
    }

    /// The same, with what the gateway put into the exchange's request.
    func with(_ exchange: Exchange) -> CaptureRedaction {
        var redaction = self
        redaction.add(exchange)
        return redaction
    }

    private mutating func add(_ exchange: Exchange) {
        let names = exchange.injectedFields
        if !names.isEmpty { injected = names.map { Array($0.text.lowercased().utf8) } }
    }

    /// Whether a name is one of those; names know no case.
    private static func isAmong(_ name: String, _ names: [[UInt8]]) -> Bool {
        var name = name
        return name.withUTF8 { bytes in
            names.contains { other in
                other.count == bytes.count && zip(other, bytes).allSatisfy { $0 == CapturedMessage.lower($1) }
            }
        }
    }

    /// The lines of a header or trailer section.
    public func shown(_ fields: HttpFields) -> [CapturedMessage.Field] { self.fields(fields).shown }

    /// The same, and what was masked in them.
    func fields(_ fields: HttpFields) -> (shown: [CapturedMessage.Field], secrets: [CapturedSecrets.Value]) {
        var shown: [CapturedMessage.Field] = []
        var secrets: [CapturedSecrets.Value] = []
        for (name, value) in fields {
            let isInjected = !injected.isEmpty && CaptureRedaction.isAmong(name, injected)
            if isInjected || CaptureRedaction.isAmong(name, redacted) {
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
        for (place, field) in message.fields.enumerated() where CaptureRedaction.isAmong(field.name, redacted) {
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
