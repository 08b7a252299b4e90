@testable import Capturing
@testable import DiskCapturing
import HttpWare

/// Captures as files contain them, which anything may have changed, and content whose members are masked.
extension Fuzzing {
    /// A record that can be read is written so that it reads as the same; a file of rows ends; masking adds nothing but marks.
    public static func captureRecords(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        switch choice & 0x03 {
        case 0:
            guard let row = readRow(wire) else { return }
            _ = try? wire.withUnsafeBytes { try CaptureRecord.facts($0) }
            guard let again = readRow(CaptureRecord.row(row)) else { fatalError("our row is refused") }
            require(again.url == row.url && again.status == row.status && again.rules == row.rules, "another row")
            var pool = TextPool()
            let isSame = wire.withUnsafeBytes { bytes in
                guard let details = try? CaptureRecord.details(bytes, &pool, withSummary: true) else { return false }
                return details.kind == row.kind && details.summary == row.summary
                    && details.operations.count == row.operations.count && details.hasFault == (row.fault != nil)
            }
            require(isSame, "the row's details are others")
        case 1:
            guard let whole = readRest(wire) else { return }
            guard let again = readRest(CaptureRecord.rest(whole)) else { fatalError("our record is refused") }
            require(
                again.request == whole.request && again.messages == whole.messages && again.tls == whole.tls,
                "another record")
            let isSame = wire.withUnsafeBytes { bytes in
                guard let parts = try? CaptureRecord.parts(bytes) else { return false }
                let fields = whole.request.fields.text + whole.request.trailers.text
                return parts.request.lines == fields
                    && parts.request.content.elementsEqual(whole.request.content.kept)
                    && (parts.response == nil) == (whole.response == nil)
            }
            require(isSame, "the record's parts are others")
        case 2:
            let end = Segment.forEachRow(wire) { frame, row, place in
                require(frame.rowLength == row.count && place < wire.count, "a row beyond its file")
                return true
            }
            require(end <= max(wire.count, Segment.headBytes), "a frame beyond its file")
            _ = Segment.readHead(wire, number: 1)
        default:
            for form in [ContentMask.Form.form, .json, .events, .parts(boundary: [0x62])] {
                guard let masked = ContentMask.masked(wire, form) else { continue }
                require(isRest(masked, of: wire), "it contains more than the content and marks")
                // A mark may take a quote away, so that broken JSON is read otherwise: then more is masked, never less.
                guard let again = ContentMask.masked(masked, form) else { continue }
                require(isRest(again, of: masked), "masked twice it contains more")
            }
            // The search by shape stays within the content.
            for isCode in [false, true] {
                var last = 0
                for mark in ContentMask.allMarks(in: wire, nil, isCode: isCode) {
                    require(mark.range.lowerBound >= last && mark.range.upperBound <= wire.count, "marks overlap")
                    last = mark.range.upperBound
                }
            }
            // Events that come in pieces are masked like whole ones.
            var events = MaskedEvents()
            for end in stride(from: 0, to: wire.count, by: 7) {
                _ = events.update(Array(wire[..<end]), isLast: false)
            }
            let shown = events.update(wire, isLast: true)
            require(shown == ContentMask.masked(wire, .events) ?? wire, "masked in pieces it is another one")
        }
    }

    /// Whether a text is another one, from which parts were removed, and marks.
    private static func isRest(_ text: [UInt8], of other: [UInt8]) -> Bool {
        let mark: Set = Set(Redaction.mark.utf8 + Array("\\\"".utf8))
        var rest = other[...]
        for byte in text where !mark.contains(byte) {
            guard let place = rest.firstIndex(of: byte) else { return false }
            rest = rest[(place + 1)...]
        }
        return true
    }

    private static func readRow(_ bytes: [UInt8]) -> CapturedExchange? {
        var pool = TextPool()
        return try? bytes.withUnsafeBytes { try CaptureRecord.readRow($0, &pool) }
    }

    private static func readRest(_ bytes: [UInt8]) -> CapturedExchange? {
        var exchange = CapturedExchange(
            id: 1, started: WallTime(seconds: 0), method: "GET", url: "", version: "", listener: "",
            request: CapturedMessage())
        return try? bytes.withUnsafeBytes { bytes in
            try CaptureRecord.readRest(bytes, into: &exchange)
            return exchange
        }
    }
}
