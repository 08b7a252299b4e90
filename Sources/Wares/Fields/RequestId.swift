public import HttpWare

/// Gives every request an identifier, sends it upstream and back to the client; it becomes the exchange's own.
///
/// One that the client sent is kept only where it is trusted, and only if it is 1 to 128 visible ASCII characters in one
/// line; else a new one takes its place.
///
/// | option         | type                 | default        | allowed |
/// |----------------|----------------------|----------------|---------|
/// | `header`       | field name           | `X-Request-Id` | no framing fields |
/// | `generator`    | `uuidv7` or `uuidv4` | `uuidv7`       |         |
/// | `trustInbound` | boolean              | `true` where the listener is bound to a loopback address, else `false` | |
/// | `echo`         | boolean              | `true`         |         |
public struct RequestId: Middleware, Postware {
    /// How identifiers are made. RFC 9562.
    public enum Generator: String, OptionWord {
        /// Sorts by time.
        case uuidv7
        /// Random throughout.
        case uuidv4
    }

    public var header: FieldName = .xRequestId
    public var generator = Generator.uuidv7
    /// Whether to keep what the client sent; `nil` asks whether only this host reaches the listener.
    public var trustInbound: Bool?
    /// Whether the client is told.
    public var echo = true

    /// Keeps what was received where `trustInbound` says so; `nil` asks whether only this host reaches the listener.
    public init(
        header: FieldName = .xRequestId, generator: Generator = .uuidv7, trustInbound: Bool? = nil, echo: Bool = true
    ) {
        self.header = header
        self.generator = generator
        self.trustInbound = trustInbound
        self.echo = echo
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        if trustInbound ?? exchange.isBoundToLoopback, let id = receivedId(request) {
            exchange.id = id
            request.fields.removeTwins(of: header)
            return .pass
        }
        if generator == .uuidv4 { exchange.id = RequestId.makeRandomId() }
        try request.fields.set(header, to: exchange.id)
        return .pass
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        if echo { try response.fields.set(header, to: exchange.id) }
        return .pass
    }

    private func receivedId(_ request: HttpRequest) -> String? {
        let values = request.fields.values(of: header)
        guard values.count == 1, let value = values.first, (1...128).contains(value.utf8.count),
            value.utf8.allSatisfy({ 0x21...0x7e ~= $0 })
        else { return nil }
        return value
    }

    /// A UUID of version 4, RFC 9562 §5.4.
    private static func makeRandomId() -> String {
        var random = SystemRandomNumberGenerator()
        let high = random.next() & ~0xf000 | 0x4000
        let low = random.next() & ~(3 << 62) | 2 << 62
        return [
            hex(high >> 32, 8), hex(high >> 16 & 0xffff, 4), hex(high & 0xffff, 4), hex(low >> 48, 4),
            hex(low & 0xffff_ffff_ffff, 12),
        ].joined(separator: "-")
    }

    private static func hex(_ value: UInt64, _ digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: digits - text.utf8.count) + text
    }
}

extension RequestId: ConfigurableWare {
    public static let name: WareName = "requestId"
    public static let about = WareAbout(
        "Gives every request an identifier, sends it upstream and back to the client.", source: "RFC 9562",
        example: #"""
            - requestId: { trustInbound: false }
            """#,
        details: #"""
            It is the exchange's own then: `{exchange.id}`, and `id` in the access log.
            One that the client sent is kept only where it is trusted, and only if it is 1 to 128 visible ASCII characters in one line.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("header", into: &header, doc: "the field that carries it; no framing field, not Host")
        options.read("generator", into: &generator, doc: "how a new one is made")
        options.read(
            "trustInbound", into: &trustInbound,
            doc:
                "keeps one that the client sent; by default where the listener is bound to a loopback address or a Unix socket"
        )
        options.read("echo", into: &echo, doc: "sends it back to the client too")
        if FieldEdits.isFraming(header) || header == .host {
            options.fail(at: "header", "\(header) has a meaning of its own; write a name such as X-Request-Id")
        }
    }
}
