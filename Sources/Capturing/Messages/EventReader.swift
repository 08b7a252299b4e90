public import HttpWare

/// Reads server-sent events from decoded content while it arrives. HTML Standard §9.2.6.
///
/// Memory is limited: only the beginning of an event's data, type and id is kept.
public struct EventReader {
    private let limit: Int
    private var line: PieceBuffer
    private var data: PieceBuffer
    private var hasData = false
    private var type: String?
    private var id: String?
    private var isAfterReturn = false
    private var isFirstLine = true

    /// The most bytes of a field name with its colon and space.
    private static let longestName = 16

    /// A reader that keeps at most `limit` bytes of the data of each event.
    public init(limit: Int) {
        self.limit = max(0, limit)
        line = PieceBuffer(limit: self.limit + EventReader.longestName)
        data = PieceBuffer(limit: self.limit)
    }

    /// Reads bytes; returns the events that they complete.
    public mutating func read(_ input: UnsafeRawBufferPointer, at time: WallTime) -> [CapturedPiece] {
        var pieces: [CapturedPiece] = []
        var start = 0
        for (place, byte) in input.enumerated() where byte == 0x0a || byte == 0x0d {
            defer { start = place + 1 }
            // A line feed after a carriage return belongs to the same line end.
            if byte == 0x0a, isAfterReturn, place == start {
                isAfterReturn = false
                continue
            }
            line.append(UnsafeRawBufferPointer(rebasing: input[start..<place]))
            isAfterReturn = byte == 0x0d
            if let piece = endLine(at: time) { pieces.append(piece) }
        }
        if start < input.count {
            isAfterReturn = false
            line.append(UnsafeRawBufferPointer(rebasing: input[start...]))
        }
        return pieces
    }

    private mutating func endLine(at time: WallTime) -> CapturedPiece? {
        var (text, size) = line.take()
        if isFirstLine, text.starts(with: [0xef, 0xbb, 0xbf]) {
            text.removeFirst(3)
            size -= 3
        }
        isFirstLine = false
        guard !text.isEmpty else {
            defer {
                type = nil
                hasData = false
            }
            let (bytes, size) = data.take()
            guard hasData else { return nil }
            return CapturedPiece(.receive, .event(type: type, id: id), time: time, data: bytes, size: size)
        }
        let name = text.prefix { $0 != 0x3a }
        var value = text.dropFirst(name.count + 1)
        if value.first == 0x20 { value = value.dropFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "data":
            if hasData { data.append(0x0a) }
            hasData = true
            data.append(value)
            // The part of the line that was not kept counts too.
            data.count(size - text.count)
        case "event": type = String(decoding: value.prefix(limit), as: UTF8.self)
        case "id": if !value.contains(0) { id = String(decoding: value.prefix(limit), as: UTF8.self) }
        default: break
        }
        return nil
    }
}
