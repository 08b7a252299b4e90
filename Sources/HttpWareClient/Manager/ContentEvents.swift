/// One event of a server. WHATWG HTML §9.2.6.
public struct ServerEvent: Sendable, Equatable {
    /// The event's type; `message` unless the server says another.
    public var type = "message"
    /// The data, its lines joined by LF.
    public var data = ""
    /// The last id that the server gave; empty before there was one.
    public var id = ""

    public init(type: String = "message", data: String = "", id: String = "") {
        self.type = type
        self.data = data
        self.id = id
    }
}

/// The events of a `text/event-stream`. WHATWG HTML §9.2.5.
public struct ContentEvents: AsyncSequence, Sendable {
    public typealias Element = ServerEvent

    private let lines: ContentLines

    init(_ bytes: ResponseContent) { lines = ContentLines(bytes) }

    public func makeAsyncIterator() -> Iterator { Iterator(lines: lines.makeAsyncIterator()) }

    public struct Iterator: AsyncIteratorProtocol {
        private var lines: ContentLines.Iterator
        private var parser = ServerEventParser()

        init(lines: ContentLines.Iterator) { self.lines = lines }

        /// How long the server wants a client to wait before it connects again; `nil` where it said nothing.
        public var retry: Duration? { parser.retry }

        /// The next event; `nil` at the end, where one without its empty line is dropped, as the standard has it.
        public mutating func next() async throws -> ServerEvent? {
            while let line = try await lines.next() {
                if let event = parser.take(line) { return event }
            }
            return nil
        }
    }
}

/// Puts events together from lines. WHATWG HTML §9.2.6.
struct ServerEventParser {
    private(set) var retry: Duration?
    private var type = ""
    private var data: String?
    private var id = ""
    private var isFirst = true

    /// Takes a line, and answers the event that it ends.
    mutating func take(_ line: String) -> ServerEvent? {
        var line = Substring(line)
        if isFirst, line.unicodeScalars.first == "\u{feff}" { line = line.dropFirst() }
        isFirst = false
        if line.isEmpty { return dispatch() }
        guard line.first != ":" else { return nil }
        let colon = line.firstIndex(of: ":") ?? line.endIndex
        let field = line[..<colon]
        var value = colon == line.endIndex ? "" : line[line.index(after: colon)...]
        if value.first == " " { value = value.dropFirst() }
        switch field {
        case "event": type = String(value)
        case "data": data = data.map { $0 + "\n" + value } ?? String(value)
        case "id" where !value.unicodeScalars.contains("\0"): id = String(value)
        case "retry" where !value.isEmpty && value.utf8.allSatisfy({ (0x30...0x39).contains($0) }):
            if let milliseconds = Int(value) { retry = .milliseconds(milliseconds) }
        default: break
        }
        return nil
    }

    private mutating func dispatch() -> ServerEvent? {
        defer {
            type = ""
            data = nil
        }
        guard let data else { return nil }
        return ServerEvent(type: type.isEmpty ? "message" : type, data: data, id: id)
    }
}
