/// The lines of content, without their ends. UTF-8; other bytes come out as U+FFFD.
public struct ContentLines: AsyncSequence, Sendable {
    public typealias Element = String

    private let bytes: ResponseContent
    /// The longest line: a stream without line ends must not fill the memory.
    public var limit = ByteCount.mebibytes(1)

    init(_ bytes: ResponseContent) { self.bytes = bytes }

    public func makeAsyncIterator() -> Iterator {
        Iterator(bytes: bytes.makeAsyncIterator(), failure: bytes.failure, limit: limit.bytes)
    }

    public struct Iterator: AsyncIteratorProtocol {
        private var bytes: ResponseContent.Iterator
        private let failure: StreamFailure
        private let limit: Int
        private var buffer: [UInt8] = []
        private var start = 0
        private var looked = 0
        private var isOver = false

        init(bytes: ResponseContent.Iterator, failure: StreamFailure, limit: Int) {
            self.bytes = bytes
            self.failure = failure
            self.limit = limit
        }

        /// The next line; `nil` at the end. Throws as the content does, and when a line is too long.
        public mutating func next() async throws -> String? {
            while true {
                if let end = buffer[looked...].firstIndex(of: 0x0a) {
                    var line = buffer[start..<end]
                    if line.last == 0x0d { line.removeLast() }
                    start = end + 1
                    looked = start
                    return String(decoding: line, as: UTF8.self)
                }
                guard buffer.count - start <= limit else {
                    throw failure.error(
                        GatewayError(.upstream, .responseContentTooLarge, "a line is longer than \(limit) bytes"))
                }
                if isOver {
                    guard start < buffer.count else { return nil }
                    defer { start = buffer.count }
                    looked = buffer.count
                    return String(decoding: buffer[start...], as: UTF8.self)
                }
                buffer.removeFirst(start)
                start = 0
                looked = buffer.count
                if let piece = try await bytes.next() { buffer += piece } else { isOver = true }
            }
        }
    }
}
