/// The lines of content, without their line ends. Invalid UTF-8 becomes U+FFFD.
public struct ContentLines: AsyncSequence, Sendable {
    public typealias Element = String

    private let bytes: ResponseContent
    /// The maximum length of a line. It keeps a stream without line ends from filling the memory.
    public var limit = ByteCount.mebibytes(1)

    init(_ bytes: ResponseContent) { self.bytes = bytes }

    public func makeAsyncIterator() -> Iterator {
        Iterator(bytes: bytes.makeAsyncIterator(), failure: bytes.failure, limit: limit)
    }

    public struct Iterator: AsyncIteratorProtocol {
        private var bytes: ResponseContent.Iterator
        private let failure: StreamFailure
        private let limit: ByteCount
        private var splitter: LineSplitter
        private var isOver = false

        init(bytes: ResponseContent.Iterator, failure: StreamFailure, limit: ByteCount) {
            self.bytes = bytes
            self.failure = failure
            self.limit = limit
            splitter = LineSplitter(limit: limit.bytes)
        }

        /// The next line; `nil` at the end. Throws the errors of the content, and an error if a line is too long.
        public mutating func next() async throws -> String? {
            do {
                while true {
                    if let line = try splitter.next() { return line }
                    if isOver { return splitter.rest() }
                    if let piece = try await bytes.next() { splitter.append(piece) } else { isOver = true }
                }
            } catch is LineSplitter.TooLong {
                throw failure.error(GatewayError(.upstream, .responseContentTooLarge, "a line is longer than \(limit)"))
            }
        }
    }
}
