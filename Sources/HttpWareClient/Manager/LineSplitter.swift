/// Splits bytes that arrive in pieces into lines, which end with LF or CRLF.
struct LineSplitter {
    /// A line exceeds the limit.
    struct TooLong: Error {}

    private let limit: Int
    private var buffer: [UInt8] = []
    private var start = 0
    private var looked = 0

    init(limit: Int) { self.limit = limit }

    /// Adds a piece to the bytes that were not returned yet.
    mutating func append(_ piece: [UInt8]) {
        buffer.removeFirst(start)
        looked -= start
        start = 0
        buffer += piece
    }

    /// The next complete line, without its end. Throws if the line exceeds the limit, even if it is incomplete.
    mutating func next() throws(TooLong) -> String? {
        guard let end = buffer[looked...].firstIndex(of: 0x0a) else {
            looked = buffer.count
            guard buffer.count - start <= limit else { throw TooLong() }
            return nil
        }
        guard end - start <= limit else { throw TooLong() }
        var line = buffer[start..<end]
        if line.last == 0x0d { line.removeLast() }
        start = end + 1
        looked = start
        return String(decoding: line, as: UTF8.self)
    }

    /// The last line, if it has no line end; `nil` if nothing remains.
    mutating func rest() -> String? {
        guard start < buffer.count else { return nil }
        defer {
            start = buffer.count
            looked = start
        }
        return String(decoding: buffer[start...], as: UTF8.self)
    }
}
