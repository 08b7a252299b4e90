import HttpWare

/// The message about one half of an exchange. A value, so that any thread can write it.
struct CalloutMessage: Sendable {
    enum Half: String, Sendable {
        case request, response
    }

    /// The version of the messages.
    static let version = 1

    let half: Half
    /// The JSON with all members but the content: the content belongs before its last two bytes, the ends of two objects.
    private let head: [UInt8]
    /// The content; `nil` without content, or if the program has not asked for it.
    private let content: CalloutContent?

    /// The bytes of the content, before it is decoded.
    var contentCount: Int { content?.bytes.count ?? 0 }
    /// Whether the content has a coding.
    var isCoded: Bool { content?.codings.isEmpty == false }

    /// The message as JSON. Throws if the content cannot be decoded within its limit.
    func json() throws(CalloutFault) -> [UInt8] {
        guard let content = try content?.decoded() else { return head }
        var start = head
        start.reserveCapacity(head.count + content.count * 4 / 3 + 32)
        start.removeLast(2)
        var writer = JsonWriter(continuing: start)
        CalloutContent.write(content, to: &writer)
        return writer.bytes + Array("}}".utf8)
    }

    /// The message about a request.
    init(_ request: HttpRequest, in exchange: Exchange, content: CalloutContent?) {
        half = .request
        self.content = content
        head = CalloutMessage.head(.request, exchange) { writer in
            CalloutMessage.write(request, in: exchange, to: &writer)
        }
    }

    /// The message about a response. It describes the request that went upstream, too, without its content.
    init(_ response: HttpResponse, in exchange: Exchange, content: CalloutContent?) {
        half = .response
        self.content = content
        head = CalloutMessage.head(.response, exchange) { writer in
            if let request = exchange.request { CalloutMessage.write(request, in: exchange, to: &writer) }
            writer.object("response") { writer in
                writer.number("status", response.status.code)
                CalloutMessage.write(response.fields, to: &writer)
            }
        }
    }

    /// The members of both halves, and behind them the members of one, which `write` adds.
    private static func head(_ half: Half, _ exchange: Exchange, _ write: (inout JsonWriter) -> Void) -> [UInt8] {
        var writer = JsonWriter(reserving: 1024)
        writer.object { writer in
            writer.number("version", version)
            writer.text("half", half.rawValue)
            writer.text("id", exchange.id)
            writer.text("exchange", CalloutMark.text(of: exchange))
            writer.text("route", exchange.route)
            writer.text("service", exchange.service)
            writer.text("listener", exchange.listener)
            writer.text("client", exchange.client.map { "\($0)" })
            writer.text("principal", exchange.principal?.name)
            write(&writer)
        }
        return writer.bytes
    }

    private static func write(_ request: HttpRequest, in exchange: Exchange, to writer: inout JsonWriter) {
        writer.object("request") { writer in
            writer.text("method", request.method.name)
            writer.text("url", CalloutUrl.text(of: request, in: exchange))
            writer.text("version", request.version.name)
            write(request.fields, to: &writer)
        }
    }

    private static func write(_ fields: HttpFields, to writer: inout JsonWriter) {
        writer.list("fields") { list in
            fields.forEachLine { list.pair($0, $1) }
        }
    }
}

/// The text that tells the exchanges of a gateway apart.
private enum CalloutMark: ExchangeKey {
    typealias Value = String

    static func text(of exchange: Exchange) -> String {
        if let mark = exchange[CalloutMark.self] { return mark }
        // Always 13 characters.
        let mark = String(UInt64.random(in: 1 << 63 ... .max), radix: 36)
        exchange[CalloutMark.self] = mark
        return mark
    }
}
