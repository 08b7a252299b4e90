public import HttpWare

/// A log line with placeholders: the usual ones, and some whose values are known only when the exchange has ended.
public struct LogTemplate: Sendable {
    enum Item: String, CaseIterable, Sendable {
        case time, target, `protocol`, status, bytes, unfilteredBytes, duration, upstream, route, service, responder,
            fault
    }

    enum Segment: Sendable {
        case text([UInt8])
        case item(Item)
        case placeholder(Template)
    }

    let segments: [Segment]
    /// The text of the template.
    public let source: String

    /// Appends the line without its line end. A missing value is `-`, and values from outside are escaped. Segments in
    /// `hiding` appear only as a mark.
    func write(_ exchange: Exchange, _ line: inout LogLine, _ time: inout LogTime, hiding: Set<Int> = []) {
        guard let request = exchange.request else { return }
        for (index, segment) in segments.enumerated() {
            switch segment {
            case .text(let bytes): line.raw(bytes)
            case .item(let item): LogTemplate.write(item, request, exchange, &line, &time)
            case .placeholder(let template):
                let text = template.text(request, in: exchange)
                if hiding.contains(index), !text.isEmpty {
                    line.raw(Array(Redaction.mark.utf8))
                } else {
                    LogTemplate.write(text, &line)
                }
            }
        }
    }

    /// The segments that show a credential: one of these fields, or a query parameter with the name of a credential.
    func hiddenSegments(_ fields: [FieldName]) -> Set<Int> {
        Set(
            segments.indices.filter { index in
                guard case .placeholder(let template) = segments[index],
                    case .placeholder(let placeholder) = template.segments.first
                else { return false }
                switch placeholder {
                case .requestHeader(let name): return FieldName(name).map(fields.contains) ?? false
                case .requestQuery(let name): return Redaction.isSecret(parameter: name)
                default: return false
                }
            })
    }

    private static func write(
        _ item: Item, _ request: HttpRequest, _ exchange: Exchange, _ line: inout LogLine, _ time: inout LogTime
    ) {
        switch item {
        case .time: time.write(exchange.wallNow, to: &line)
        case .target: request.withShownTarget { line.plain($0) }
        case .protocol: line.raw(request.receivedVersion.logged)
        case .status: line.number(exchange.loggedStatus)
        case .bytes: line.number(exchange.record.responseBytes)
        case .unfilteredBytes: line.number(exchange.record.unfilteredBytes)
        case .duration: line.milliseconds(nanoseconds: exchange.loggedNanoseconds)
        case .upstream: write(exchange.upstreamAddress, &line)
        case .route: write(exchange.route, &line)
        case .service: write(exchange.service, &line)
        case .responder: write(exchange.responder.name, &line)
        case .fault: write(exchange.failure?.fault.logged, &line)
        }
    }

    private static func write(_ text: String?, _ line: inout LogLine) {
        if let text, !text.isEmpty { line.plain(text) } else { line.byte(0x2d) }
    }
}

extension LogTemplate: OptionValue {
    public static let optionType = "log template"
    public var optionText: String { source }

    public var neededCaptures: [String] {
        segments.flatMap { segment in
            guard case .placeholder(let template) = segment else { return [String]() }
            return template.neededCaptures
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        var segments: [Segment] = []
        var rest = optionText[...]
        var text: [UInt8] = []
        while let character = rest.popFirst() {
            guard character == "{" else {
                text += Array(String(character).utf8)
                continue
            }
            if rest.first == "{" {
                rest.removeFirst()
                text.append(UInt8(ascii: "{"))
                continue
            }
            guard let end = rest.firstIndex(of: "}") else {
                throw OptionMistake(
                    "close it with }, or write {{ for a literal {", problem: "a placeholder is not closed")
            }
            if !text.isEmpty { segments.append(.text(text)) }
            text = []
            let name = String(rest[..<end])
            if let item = Item(rawValue: name) {
                segments.append(.item(item))
            } else {
                segments.append(.placeholder(try LogTemplate.placeholder(name)))
            }
            rest = rest[rest.index(after: end)...]
        }
        if !text.isEmpty { segments.append(.text(text)) }
        guard !optionText.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
            throw OptionMistake("write one line", problem: "the template holds a control character")
        }
        self.segments = segments
        source = optionText
    }

    private static func placeholder(_ name: String) throws(OptionMistake) -> Template {
        let items = Item.allCases.map(\.rawValue)
        let near = didYouMean(name, among: items)
        guard near.isEmpty else {
            throw OptionMistake(String(near.dropFirst(2)), problem: "\(name.quotedForErrors) is not a placeholder")
        }
        return try Template(optionText: "{\(name)}")
    }
}
