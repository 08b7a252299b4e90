import Capturing
import HttpWare

/// Reads the facts for filters in place, without creating an exchange from a record that does not match.
extension CaptureRecord {
    /// The first facts of a row. Their pointers point into `bytes`.
    static func facts(_ bytes: UnsafeRawBufferPointer) throws(DamagedRecord) -> CaptureFilter.Facts {
        var row = RecordReader(bytes)
        return try facts(&row)
    }

    private static func facts(_ row: inout RecordReader) throws(DamagedRecord) -> CaptureFilter.Facts {
        let id = try row.number()
        let duration = Int64(try row.number())
        let size = try row.number()
        let status = try row.flag() ? try row.number() : nil
        let url = try row.piece()
        return CaptureFilter.Facts(
            id: id, url: url, method: try row.piece(), status: status, size: size, duration: duration)
    }

    /// The other facts of a row. The wares' decisions are read only if needed.
    static func details(
        _ bytes: UnsafeRawBufferPointer, _ pool: inout TextPool, withSummary: Bool
    ) throws(DamagedRecord) -> CaptureFilter.Details {
        var row = RecordReader(bytes)
        _ = try facts(&row)
        var details = CaptureFilter.Details()
        _ = try row.piece()
        details.kind = CapturedExchange.Kind(rawValue: try row.text()) ?? .http
        _ = (try row.number(), try row.number(), try row.piece())
        details.route = try optionalPiece(&row)
        details.service = try optionalPiece(&row)
        details.client = try optionalPiece(&row)
        details.server = try optionalPiece(&row)
        details.hasFault = try optionalPiece(&row) != nil
        for _ in 0..<(try row.count()) { details.operations.append(try row.piece()) }
        details.isRepeated = try row.flag()
        if details.isRepeated { _ = try row.number() }
        for _ in 0..<(try row.count()) { _ = try row.number() }
        _ = (try row.piece(), try row.flag())
        details.requestTypes = try types(&row)
        if try row.flag() { details.responseTypes = try types(&row) }
        if withSummary, try row.flag() { details.summary = try readSummary(&row, &pool) }
        return details
    }

    private static func optionalPiece(
        _ row: inout RecordReader
    ) throws(DamagedRecord) -> UnsafeRawBufferPointer? {
        try row.flag() ? try row.piece() : nil
    }

    private static func types(_ row: inout RecordReader) throws(DamagedRecord) -> [UnsafeRawBufferPointer] {
        _ = try row.number()
        var types: [UnsafeRawBufferPointer] = []
        for _ in 0..<(try row.count()) { types.append(try row.piece()) }
        return types
    }

    /// The fields and contents of the client's side. All pointers except those of fields point into `bytes`.
    static func parts(_ bytes: UnsafeRawBufferPointer) throws(DamagedRecord) -> CaptureFilter.Parts {
        var rest = RecordReader(bytes)
        var parts = CaptureFilter.Parts()
        parts.request = try part(&rest)
        if try rest.flag() { try pass(&rest) }
        if try rest.flag() { parts.response = try part(&rest) }
        if try rest.flag() { try pass(&rest) }
        for _ in 0..<(try rest.count()) {
            let direction: CapturedPiece.Direction = try rest.flag() ? .send : .receive
            let form = try rest.number()
            if form == -1 { _ = (try optionalPiece(&rest), try optionalPiece(&rest)) }
            _ = (try rest.number(), try rest.number())
            let data = try rest.piece()
            if form >= 0 { parts.messages.append((direction, data)) }
            _ = try rest.number()
        }
        return parts
    }

    /// A message of the client's side, which is always written in full.
    private static func part(_ rest: inout RecordReader) throws(DamagedRecord) -> CaptureFilter.Parts.Message {
        var message = CaptureFilter.Parts.Message()
        // Enough for the lines of most messages.
        message.lines.reserveCapacity(512)
        for isTrailer in [false, true] {
            guard try !rest.flag() else { throw DamagedRecord() }
            for _ in 0..<(try rest.count()) {
                let (name, value) = (try rest.piece(), try rest.piece())
                if !isTrailer, !message.isCoded { message.isCoded = isContentEncoding(name) }
                message.lines += name
                message.lines.append(0x3a)
                message.lines.append(0x20)
                message.lines += value
                message.lines.append(0x0a)
            }
        }
        guard try !rest.flag() else { throw DamagedRecord() }
        message.content = try rest.piece()
        if try passContent(&rest) { message.isCoded = false }
        return message
    }

    private static func isContentEncoding(_ name: UnsafeRawBufferPointer) -> Bool {
        let wanted: StaticString = "content-encoding"
        guard name.count == wanted.utf8CodeUnitCount else { return false }
        for place in 0..<name.count where name[place] | 0x20 != wanted.utf8Start[place] { return false }
        return true
    }

    /// Skips the other side of a message.
    private static func pass(_ rest: inout RecordReader) throws(DamagedRecord) {
        for _ in 0..<2 where try !rest.flag() {
            for _ in 0..<(try rest.count()) { _ = (try rest.piece(), try rest.piece()) }
        }
        if try !rest.flag() { _ = try rest.piece() }
        _ = try passContent(&rest)
    }

    /// Skips the facts after the bytes of a content. Returns whether its codings were removed.
    private static func passContent(_ rest: inout RecordReader) throws(DamagedRecord) -> Bool {
        _ = (try rest.number(), try optionalPiece(&rest), try rest.number())
        let isDecoded = try rest.flag()
        if try rest.flag() { _ = try rest.number() }
        return isDecoded
    }
}
