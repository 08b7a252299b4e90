/// Reads server-sent events while their bytes arrive, in pieces of any size. HTML Standard §9.2.6.
///
/// Memory is limited: only the beginning of an event's data, type and id is kept.
package struct EventReader {
    /// A received event.
    package struct Event: Sendable, Equatable {
        /// The type; `nil` if the event states none, so that it is a `message`.
        package var type: String?
        /// The last id that this event or an earlier one stated; `nil` before the first one.
        package var id: String?
        /// The beginning of the data, whose lines are joined by LF.
        package var data: [UInt8]
        /// The length of the whole data in bytes.
        package var size: Int
    }

    /// The name of a line's field.
    package enum Field { case comment, data, event, id, retry, unknown }

    private let limit: Int
    private var lines = EventLines()
    private var line: PieceBuffer
    private var data: PieceBuffer
    private var hasData = false
    private var type: String?
    private var id: String?
    private var isFirstLine = true
    /// The last id of a complete event, or of a later block without data. The id of an unfinished event does not count.
    package private(set) var lastId: String?
    /// The time in milliseconds that a client is asked to wait before it connects again; `nil` if it was not stated.
    package private(set) var retry: Int?

    /// The most bytes of a field name with its colon and space.
    private static let longestName = 16

    /// The mark that may precede the first line.
    package static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

    /// A reader that keeps at most `limit` bytes of the data of each event. The stream continues after the event with the id `after`.
    package init(limit: Int, after id: String? = nil) {
        self.limit = min(max(0, limit), .max - EventReader.longestName)
        self.id = id
        lastId = id
        line = PieceBuffer(limit: self.limit + EventReader.longestName)
        data = PieceBuffer(limit: self.limit)
    }

    /// The bytes that were received of the unfinished event's data and of the unfinished line.
    package var size: Int { data.size + line.size }

    /// Reads bytes from `start` on, up to the end of an event, and returns that event; `nil` if the bytes complete none.
    package mutating func next(in input: UnsafeRawBufferPointer, from start: inout Int) -> Event? {
        while let (text, isEnded) = lines.next(in: input, from: &start) {
            line.append(UnsafeRawBufferPointer(rebasing: input[text]))
            if isEnded, let event = endLine() { return event }
        }
        return nil
    }

    private mutating func endLine() -> Event? {
        var (text, size) = line.take()
        if isFirstLine, text.starts(with: EventReader.byteOrderMark) {
            text.removeFirst(3)
            size -= 3
        }
        isFirstLine = false
        guard !text.isEmpty else { return endEvent() }
        let (field, value) = EventReader.field(text[...])
        switch field {
        case .data:
            if hasData { data.append(0x0a) }
            hasData = true
            data.append(value)
            // The part of the line that was not kept counts too.
            data.count(size - text.count)
        case .event: type = value.isEmpty ? nil : String(decoding: value.prefix(limit), as: UTF8.self)
        case .id: if !value.contains(0) { id = String(decoding: value.prefix(limit), as: UTF8.self) }
        case .retry:
            let isNumber = value.allSatisfy { 0x30...0x39 ~= $0 }
            if isNumber, let milliseconds = Int(String(decoding: value, as: UTF8.self)) { retry = milliseconds }
        case .comment, .unknown: break
        }
        return nil
    }

    private mutating func endEvent() -> Event? {
        lastId = id
        defer {
            type = nil
            hasData = false
        }
        let (bytes, size) = data.take()
        return hasData ? Event(type: type, id: id, data: bytes, size: size) : nil
    }

    /// The field of a line, and its value.
    package static func field(_ line: ArraySlice<UInt8>) -> (Field, value: ArraySlice<UInt8>) {
        let name = line.prefix { $0 != 0x3a }
        var value = line.dropFirst(name.count + 1)
        if value.first == 0x20 { value = value.dropFirst() }
        let field: Field =
            switch String(decoding: name.prefix(longestName), as: UTF8.self) {
            case "" where !line.isEmpty: .comment
            case "data": .data
            case "event": .event
            case "id": .id
            case "retry": .retry
            default: .unknown
            }
        return (field, value)
    }

    /// The start of the last event that is still incomplete. The content before it no longer changes.
    package static func endOfEvents(in bytes: [UInt8], from start: Int) -> Int {
        var end = bytes.count
        while end > start + 1 {
            end -= 1
            let (before, last) = (bytes[end - 1], bytes[end])
            if last == 0x0a && before == 0x0a || last == 0x0d && before == 0x0d { return end + 1 }
            if last == 0x0a, before == 0x0d, end - start >= 2, bytes[end - 2] == 0x0a { return end + 1 }
        }
        return start
    }
}

/// Splits bytes that arrive in pieces into lines, which end with CR, LF, or both. HTML Standard §9.2.5.
package struct EventLines {
    private var isAfterReturn = false

    package init() {}

    /// The line that begins at `start`, or continues there, as far as it is in this piece, and whether its end is there too; `nil` at the
    /// end of the piece. Moves `start` to the next line.
    package mutating func next(in piece: UnsafeRawBufferPointer, from start: inout Int) -> (
        text: Range<Int>, isEnded: Bool
    )? {
        if isAfterReturn, start < piece.count {
            isAfterReturn = false
            // A line feed after a carriage return belongs to the same line end.
            if piece[start] == 0x0a { start += 1 }
        }
        guard start < piece.count else { return nil }
        let text = start..<(piece[start...].firstIndex(where: TextBytes.isLineEnd) ?? piece.count)
        guard text.upperBound < piece.count else {
            start = piece.count
            return (text, false)
        }
        isAfterReturn = piece[text.upperBound] == 0x0d
        start = text.upperBound + 1
        return (text, true)
    }
}
