/// Splits bytes that arrive in pieces into lines.
struct LineSplitter {
    /// The line ends that are recognized.
    enum Ends {
        /// LF or CRLF.
        case lineFeed
        /// LF, CRLF, or a CR alone. WHATWG HTML §9.2.5.
        case any
    }

    /// A line exceeds the limit.
    struct TooLong: Error {}

    private let ends: Ends
    private let limit: Int
    private var buffer: [UInt8] = []
    private var start = 0
    private var looked = 0
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    private var endedWithReturn = false

    init(_ ends: Ends, limit: Int) {
        self.ends = ends
        self.limit = limit
    }

    /// Adds a piece to the bytes that were not returned yet.
    mutating func append(_ piece: [UInt8]) {
        buffer.removeFirst(start)
        looked -= start
        start = 0
        buffer += piece
    }

    /// The next complete line, without its end. Throws if the line exceeds the limit, even if it is incomplete.
    mutating func next() throws(TooLong) -> String? {
        if endedWithReturn, start < buffer.count {
            endedWithReturn = false
            if buffer[start] == 0x0a {
                start += 1
                looked = start
            }
        }
        let ends = self.ends
        guard let end = buffer[looked...].firstIndex(where: { $0 == 0x0a || $0 == 0x0d && ends == .any }) else {
            looked = buffer.count
            guard buffer.count - start <= limit else { throw TooLong() }
            return nil
        }
        guard end - start <= limit else { throw TooLong() }
        var line = buffer[start..<end]
        if buffer[end] == 0x0d {
            endedWithReturn = true
        } else if ends == .lineFeed, line.last == 0x0d {
            line.removeLast()
        }
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
