/// A server-sent event. WHATWG HTML §9.2.6.
public struct ServerEvent: Sendable, Equatable {
    /// The event's type. The default is `message`.
    public var type = "message"
    /// The data. Its lines are joined by LF.
    public var data = ""
    /// The last id that the server sent; empty before the first one.
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
    /// The maximum size of one event's data. It keeps an endless event from filling the memory.
    public var limit = ByteCount.mebibytes(4)

    init(_ bytes: ResponseContent) { lines = ContentLines(bytes, ends: .any) }

    public func makeAsyncIterator() -> Iterator { makeAsyncIterator(after: "") }

    /// The events that follow the event with this id.
    func makeAsyncIterator(after id: String) -> Iterator {
        Iterator(lines: lines.makeAsyncIterator(), limit: limit, parser: ServerEventParser(after: id))
    }

    public struct Iterator: AsyncIteratorProtocol {
        private var lines: ContentLines.Iterator
        private var parser: ServerEventParser
        private let limit: ByteCount

        init(lines: ContentLines.Iterator, limit: ByteCount, parser: ServerEventParser) {
            self.lines = lines
            self.limit = limit
            self.parser = parser
        }

        /// The time that the server asks a client to wait before it connects again; `nil` if the server did not state one.
        public var retry: Duration? { parser.retry }

        /// The last id from the server: that of the last event, or of a later block without data.
        public var lastEventId: String { parser.lastId }

        /// The next event; `nil` at the end. As the standard requires, an unfinished event at the end is dropped. Throws
        /// the errors of the content, and an error if a line or an event is too long.
        public mutating func next() async throws -> ServerEvent? {
            while let line = try await lines.next() {
                if let event = parser.takeLine(line) { return event }
                guard parser.size <= limit.bytes else { throw lines.tooLarge("an event is longer than \(limit)") }
            }
            return nil
        }
    }
}

/// Assembles events from lines. WHATWG HTML §9.2.6.
struct ServerEventParser {
    private(set) var retry: Duration?
    /// The id of the last complete block. The id of an unfinished block does not count.
    private(set) var lastId: String
    private var type = ""
    private var data: String?
    private var id: String
    private var isFirst = true

    /// A parser for a stream that continues after the event with this id.
    init(after id: String = "") {
        self.id = id
        lastId = id
    }

    /// The bytes of data kept for the unfinished event.
    var size: Int { data?.utf8.count ?? 0 }

    /// Adds a line. Returns the event that it completes.
    mutating func takeLine(_ text: String) -> ServerEvent? {
        // Code points, as in the standard: a colon ends the name even if a combining mark follows it.
        var line = text.unicodeScalars[...]
        if isFirst, line.first == "\u{feff}" { line.removeFirst() }
        isFirst = false
        if line.isEmpty { return dispatch() }
        guard line.first != ":" else { return nil }
        let colon = line.firstIndex(of: ":") ?? line.endIndex
        let field = Substring(line[..<colon])
        var value = line[colon...].dropFirst()
        if value.first == " " { value.removeFirst() }
        switch field {
        case "event": type = String(value)
        case "data":
            if data == nil { data = "" } else { data?.append("\n") }
            data?.unicodeScalars.append(contentsOf: value)
        case "id" where !value.contains("\0"): id = String(value)
        case "retry" where !value.isEmpty && value.allSatisfy({ ("0"..."9").contains($0) }):
            if let milliseconds = Int(String(value)) { retry = .milliseconds(milliseconds) }
        default: break
        }
        return nil
    }

    private mutating func dispatch() -> ServerEvent? {
        lastId = id
        defer {
            type = ""
            data = nil
        }
        guard let data else { return nil }
        return ServerEvent(type: type.isEmpty ? "message" : type, data: data, id: id)
    }
}
