import HttpWare

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

    private let bytes: ResponseContent
    /// The maximum size of one event's data. It keeps an endless event from filling the memory.
    public var limit = ByteCount.mebibytes(4)

    init(_ bytes: ResponseContent) { self.bytes = bytes }

    public func makeAsyncIterator() -> Iterator { makeAsyncIterator(after: "") }

    /// The events that follow the event with this id.
    func makeAsyncIterator(after id: String) -> Iterator {
        Iterator(
            bytes: bytes.makeAsyncIterator(), failure: bytes.failure, limit: limit,
            reader: EventReader(limit: limit.bytes, after: id))
    }

    public struct Iterator: AsyncIteratorProtocol {
        private var bytes: ResponseContent.Iterator
        private let failure: StreamFailure
        private let limit: ByteCount
        private var reader: EventReader
        private var piece: [UInt8] = []
        /// The position in the piece up to which it has been read.
        private var place = 0

        init(bytes: ResponseContent.Iterator, failure: StreamFailure, limit: ByteCount, reader: EventReader) {
            self.bytes = bytes
            self.failure = failure
            self.limit = limit
            self.reader = reader
        }

        /// The time that the server asks a client to wait before it connects again; `nil` if the server did not state one.
        public var retry: Duration? { reader.retry.map { .milliseconds($0) } }

        /// The last id from the server: that of the last event, or of a later block without data.
        public var lastEventId: String { reader.lastId ?? "" }

        /// The next event; `nil` at the end. As the standard requires, an unfinished event at the end is dropped. Throws
        /// the errors of the content, and an error if an event is too long.
        public mutating func next() async throws -> ServerEvent? {
            while true {
                let event = piece.withUnsafeBytes { reader.next(in: $0, from: &place) }
                guard event?.size ?? reader.size <= limit.bytes else {
                    let reason = "an event is longer than \(limit)"
                    throw failure.error(GatewayError(.upstream, .responseContentTooLarge, reason))
                }
                if let event {
                    return ServerEvent(
                        type: event.type ?? "message", data: String(decoding: event.data, as: UTF8.self),
                        id: event.id ?? "")
                }
                guard let next = try await bytes.next() else { return nil }
                piece = next
                place = 0
            }
        }
    }
}
