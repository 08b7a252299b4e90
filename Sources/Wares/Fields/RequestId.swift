public import HttpWare

/// Gives each request a unique identifier, and sends it to the origin server and to the client.
public struct RequestId: Middleware, Postware {
    /// The version of UUID that is generated. RFC 9562.
    public enum Generator: String, OptionWord {
        /// Sorted by time.
        case uuidv7
        /// Entirely random.
        case uuidv4
    }

    /// The field that carries the identifier.
    public var header: FieldName
    /// The version of UUID that is generated.
    public var generator: Generator
    /// Whether an identifier from the client is kept; `nil` keeps it if only this host can reach the listener.
    public var trustInbound: Bool?
    /// Whether the response carries the identifier.
    public var echo: Bool

    /// Without `trustInbound`, an identifier from the client is kept if only this host can reach the listener.
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
        var random = ReplaceableRandom()
        let high = random.next() & ~0xf000 | 0x4000
        let low = random.next() & ~(3 << 62) | 2 << 62
        return [
            Hex.text(high >> 32, digits: 8), Hex.text(high >> 16, digits: 4), Hex.text(high, digits: 4),
            Hex.text(low >> 48, digits: 4), Hex.text(low, digits: 12),
        ].joined(separator: "-")
    }
}

extension RequestId: ConfigurableWare {
    public static let name: WareName = "requestId"
    public static let chainPlace: ChainPlace? = .requestIdentifier
    public static let about = WareAbout(
        "Gives each request a unique identifier, and sends it to the origin server and to the client.",
        source: "RFC 9562",
        example: #"""
            - requestId: { trustInbound: false }
            """#,
        details: #"""
            The identifier becomes that of the exchange: `{exchange.id}`, and `id` in the access log. An identifier from
            the client is kept only if it is trusted, and if it is one line of 1 to 128 visible ASCII characters.
            """#,
        otherNames: ["correlationId", "xRequestId"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "header", into: &header,
            doc:
                "name of the header field that carries the identifier; not Host or a framing field such as Content-Length"
        )
        options.read(
            "generator", into: &generator, doc: "how identifiers are generated: uuidv7 sorts by time, uuidv4 is random")
        options.read(
            "trustInbound", into: &trustInbound,
            doc:
                "keeps an identifier that the client sent; by default only if the listener is bound to a loopback address or a Unix socket"
        )
        options.read("echo", into: &echo, doc: "sends the identifier to the client in the response")
        if FieldEdits.isFraming(header) || header == .host {
            options.fail(at: "header", "\(header) is reserved; write a name such as X-Request-Id")
        }
    }
}
