public import HttpWare

/// Masks the values of credentials before anything is kept.
public struct CaptureRedaction: Sendable {
    private let redacted: FieldNames
    /// The fields that the gateway itself put into the request.
    private var injected = FieldNames([])
    let showsAll: Bool

    /// The masking rules of the settings. With an exchange, they also mask the fields that the gateway put into its
    /// request.
    public init(_ settings: CaptureSettings, _ exchange: Exchange? = nil) {
        redacted = FieldNames(settings.redacted)
        showsAll = settings.showsAll
        if let exchange { add(exchange) }
    }

    /// A copy that also masks the fields that the gateway put into the exchange's request.
    func with(_ exchange: Exchange) -> CaptureRedaction {
        var redaction = self
        redaction.add(exchange)
        return redaction
    }

    private mutating func add(_ exchange: Exchange) {
        let names = exchange.injectedFields
        if !names.isEmpty { injected = FieldNames(names) }
    }

    /// The masked lines of a header or trailer section.
    public func shown(_ fields: HttpFields) -> CapturedFields { self.fields(fields).shown }

    /// The masked lines, and the values that were masked. If `host` is set, it comes first and replaces the section's
    /// `Host`.
    func fields(
        _ fields: HttpFields, host: String? = nil
    ) -> (shown: CapturedFields, secrets: [CapturedSecrets.Value]) {
        let shown = CapturedFields(reserving: fields.count + 1, bytes: fields.wireCount + (host?.utf8.count ?? 0) + 4)
        return self.fields(shown, host: host, fields.forEachLine)
    }

    /// The same for lines that were written by `HttpFields.appendPacked`.
    func fields(
        packed: UnsafeRawBufferPointer, host: String? = nil
    ) -> (shown: CapturedFields, secrets: [CapturedSecrets.Value]) {
        let shown = CapturedFields(
            reserving: Int(packed.first ?? 0) + 1, bytes: packed.count + (host?.utf8.count ?? 0) + 4)
        return fields(shown, host: host) { HttpFields.forEachLine(packed: packed, $0) }
    }

    private func fields(
        _ empty: consuming CapturedFields, host: String?,
        _ forEachLine: ((UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Void) -> Void
    ) -> (shown: CapturedFields, secrets: [CapturedSecrets.Value]) {
        var shown = empty
        var secrets: [CapturedSecrets.Value] = []
        if let host { shown.append(name: "Host".utf8, value: host.utf8) }
        forEachLine { name, value in
            if host != nil, CapturedFields.isSame(UnsafeRawBufferPointer(name), "host") { return }
            let isInjected = injected.contains(name)
            guard isInjected || redacted.contains(name) else { return shown.append(name: name, value: value) }
            // The gateway's own credentials are never kept.
            if !isInjected { secrets.append(CapturedSecrets.Value(place: shown.count, bytes: Array(value))) }
            shown.append(name: name, value: CaptureRedaction.masked(ReceivedText.text(value)).utf8)
        }
        return (shown, secrets)
    }

    /// Masks the fields of a message that another program captured. Returns the masked values.
    func mask(_ message: inout CapturedMessage) -> [CapturedSecrets.Value] {
        var secrets: [CapturedSecrets.Value] = []
        let fields = message.fields.enumerated().map { place, field in
            guard Array(field.name.utf8).withUnsafeBufferPointer({ redacted.contains($0) }) else { return field }
            secrets.append(CapturedSecrets.Value(place: place, bytes: field.bytes))
            return CapturedMessage.Field(field.name, CaptureRedaction.masked(field.value))
        }
        message.fields = CapturedFields(fields)
        return secrets
    }

    /// The exchange with masked contents.
    public func masked(_ exchange: CapturedExchange) -> CapturedExchange {
        var exchange = exchange
        _ = maskContent(&exchange.request, limit: CaptureRedaction.mostDecoded)
        if var response = exchange.response {
            _ = maskContent(&response, limit: CaptureRedaction.mostDecoded)
            exchange.response = response
        }
        return exchange
    }

    private static let mostDecoded = 16 << 20

    /// Masks a value, except the scheme of credentials and the names of cookies.
    static func masked(_ value: String) -> String {
        guard let space = value.firstIndex(of: " "),
            value[..<space].utf8.allSatisfy({ $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a })
        else { return Redaction.mark }
        return value[...space] + Redaction.mark
    }

    /// The lines of a section without masks, for restoring values.
    public static func plain(_ fields: HttpFields) -> [CapturedMessage.Field] {
        var lines: [CapturedMessage.Field] = []
        fields.forEachLine { name, value in
            lines.append(CapturedMessage.Field(String(decoding: name, as: UTF8.self), bytes: value))
        }
        return lines
    }

    /// The masked URI.
    public func url(_ url: String) -> String { showsAll ? url : Redaction.target(url) }
}

/// Field names in lower case, for comparison without case.
private struct FieldNames: Sendable {
    private let names: [[UInt8]]
    /// One bit for each length that occurs; lengths of 63 and more share one.
    private let lengths: UInt64

    init(_ names: some Sequence<FieldName>) {
        self.names = names.map { Array($0.text.lowercased().utf8) }
        lengths = self.names.reduce(0) { $0 | 1 << UInt64(min(63, $1.count)) }
    }

    func contains(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard lengths & 1 << UInt64(min(63, name.count)) != 0 else { return false }
        return names.contains { other in
            other.withUnsafeBytes { CapturedFields.isSame(UnsafeRawBufferPointer(name), $0) }
        }
    }
}
