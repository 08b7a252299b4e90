import Capturing
import Glibc
import HttpCaching
import HttpWare
import Synchronization

/// Reads a segment as it was when the reader was made, even if the segment is erased meanwhile.
final class SegmentReader {
    let segment: Segment
    private let folder: String
    private let file: OpenFile
    private let rows: [UInt8]
    private var data: OpenFile?
    private var pool = TextPool()
    /// The part of the data that was read last, and its offset.
    private var window: (start: Int, bytes: [UInt8]) = (0, [])
    private static let mostWindow = 256 << 10

    /// `nil` if its files are gone.
    init?(_ segment: Segment, in folder: String, readsRows: Bool = true) {
        guard let file = try? OpenFile(segment.rows(in: folder)) else { return nil }
        self.segment = segment
        self.folder = folder
        self.file = file
        rows = readsRows ? file.read(at: 0, count: segment.rowBytes) : []
    }

    /// Calls the closure with each intact row, its frame and its bytes; the last row comes first.
    func forEach(
        _ body: (CapturedExchange, Segment.Frame, UnsafeRawBufferPointer) -> Void
    ) {
        rows.withUnsafeBytes { rows in
            for place in Segment.places(rows).reversed() {
                let bytes = UnsafeRawBufferPointer(rebasing: rows[place...])
                guard let frame = Segment.Frame(bytes) else { continue }
                let row = UnsafeRawBufferPointer(
                    rebasing: bytes[Segment.Frame.bytes..<Segment.Frame.bytes + frame.rowLength])
                guard frame.isIntact(bytes), let exchange = try? CaptureRecord.readRow(row, &pool)
                else { continue }
                body(exchange, frame, row)
            }
        }
    }

    /// The numbers and places of the rows that may match, among those with wanted numbers. They are in ascending order,
    /// and may include damaged rows.
    func places(_ filter: RowFilter?, wanting isWanted: (Int) -> Bool) -> [(id: Int, place: Int)] {
        rows.withUnsafeBytes { rows in
            var places: [(id: Int, place: Int)] = []
            var isSorted = true
            for place in Segment.places(rows) {
                let bytes = UnsafeRawBufferPointer(rebasing: rows[place...])
                guard let frame = Segment.Frame(bytes) else { continue }
                let row = UnsafeRawBufferPointer(
                    rebasing: bytes[Segment.Frame.bytes..<Segment.Frame.bytes + frame.rowLength])
                guard let facts = try? CaptureRecord.facts(row), isWanted(facts.id),
                    filter?.answer(facts, row, &pool) != false
                else { continue }
                if let last = places.last, last.id >= facts.id { isSorted = false }
                places.append((facts.id, place))
            }
            // Captures usually end in the order of their numbers.
            return isSorted ? places : places.sorted { $0.id < $1.id }
        }
    }

    /// The row at a place, its frame, and whether it matches. `isMatch` is `nil` if the filter needs no parts, or they
    /// do not decide. Returns `nil` if the capture does not match, or its row is damaged.
    func row(
        at place: Int, _ filter: RowFilter?
    ) -> (exchange: CapturedExchange, frame: Segment.Frame, isMatch: Bool?)? {
        rows.withUnsafeBytes { rows in
            let bytes = UnsafeRawBufferPointer(rebasing: rows[place...])
            guard let frame = Segment.Frame(bytes), frame.isIntact(bytes) else { return nil }
            let row = UnsafeRawBufferPointer(
                rebasing: bytes[Segment.Frame.bytes..<Segment.Frame.bytes + frame.rowLength])
            var isMatch: Bool?
            if let filter, filter.needsParts {
                isMatch = withData(frame) { $0.flatMap { filter.answer(row: row, rest: $0, &pool) } }
                if isMatch == false { return nil }
            }
            return (try? CaptureRecord.readRow(row, &pool)).map { ($0, frame, isMatch) }
        }
    }

    /// The places of all rows by their numbers.
    func places() -> [Int: Int] {
        var places: [Int: Int] = [:]
        _ = Segment.forEachRow(file.read(at: 0, count: segment.rowBytes)) { _, bytes, place in
            var reader = RecordReader(bytes)
            if let id = try? reader.number() { places[id] = place }
            return true
        }
        return places
    }

    /// The rest of a capture; empty if it cannot be read.
    func data(_ frame: Segment.Frame) -> [UInt8] {
        if data == nil { data = try? OpenFile(segment.data(in: folder)) }
        guard let data, frame.dataLength <= segment.dataBytes, frame.dataOffset <= segment.dataBytes - frame.dataLength
        else { return [] }
        return data.read(at: frame.dataOffset, count: frame.dataLength)
    }

    /// Calls the closure with the rest of a capture; with `nil` if it is damaged. Searches go backwards, so the data
    /// before it are read as well.
    private func withData<Result>(_ frame: Segment.Frame, _ body: (UnsafeRawBufferPointer?) -> Result) -> Result {
        let (start, end) = (frame.dataOffset, frame.dataOffset + frame.dataLength)
        if start < window.start || end > window.start + window.bytes.count {
            let isNear = end <= window.start + window.bytes.count && window.start - end < SegmentReader.mostWindow / 4
            let first = isNear ? max(0, min(start, end - SegmentReader.mostWindow)) : start
            if data == nil { data = try? OpenFile(segment.data(in: folder)) }
            guard let data, end <= segment.dataBytes else { return body(nil) }
            window = (first, data.read(at: first, count: end - first))
        }
        return window.bytes.withUnsafeBytes { bytes in
            guard end - window.start <= bytes.count else { return body(nil) }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[start - window.start..<end - window.start])
            return body(Checksum.of(RawSpan(_unsafeBytes: rest)) == frame.dataChecksum ? rest : nil)
        }
    }

    /// Adds the parts that are missing in the row. Returns false if they are damaged.
    func fill(_ capture: inout CapturedExchange, _ frame: Segment.Frame) -> Bool {
        withData(frame) { bytes in
            do throws(DamagedRecord) {
                guard let bytes else { return false }
                try CaptureRecord.readRest(bytes, into: &capture)
                return true
            } catch {
                return false
            }
        }
    }

    /// The whole capture whose row is at that place.
    func whole(at place: Int) -> CapturedExchange? {
        let head = file.read(at: place, count: Segment.Frame.bytes)
        let length =
            head.count == Segment.Frame.bytes
            ? Int(head.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self)) }) : 0
        guard length > 0, length <= segment.rowBytes - place else { return nil }
        let bytes = file.read(at: place, count: Segment.Frame.bytes + length)
        return bytes.withUnsafeBytes { bytes in
            guard let frame = Segment.Frame(bytes), frame.isIntact(bytes) else { return nil }
            var pool = TextPool()
            let row = UnsafeRawBufferPointer(rebasing: bytes[Segment.Frame.bytes...])
            guard var capture = try? CaptureRecord.readRow(row, &pool), fill(&capture, frame) else { return nil }
            return capture
        }
    }
}

/// The places of captures within the most recently used segments.
final class CaptureIndex: Sendable {
    private struct Entry {
        let number: Int
        let rowBytes: Int
        let places: [Int: Int]
    }

    private let entries = Mutex<[Entry]>([])
    private static let most = 3

    func place(of id: Int, in reader: SegmentReader) -> Int? {
        let segment = reader.segment
        let known = entries.withLock { entries -> (isKnown: Bool, place: Int?) in
            guard
                let place = entries.firstIndex(where: { $0.number == segment.number && $0.rowBytes == segment.rowBytes }
                )
            else { return (false, nil) }
            let entry = entries.remove(at: place)
            entries.append(entry)
            return (true, entry.places[id])
        }
        if known.isKnown { return known.place }
        let places = reader.places()
        entries.withLock { entries in
            entries.removeAll { $0.number == segment.number }
            entries.append(Entry(number: segment.number, rowBytes: segment.rowBytes, places: places))
            if entries.count > CaptureIndex.most { entries.removeFirst() }
        }
        return places[id]
    }

    func forget(_ number: Int) { entries.withLock { $0.removeAll { $0.number == number } } }
}

/// The segments of a folder.
enum Segments {
    static func names(_ path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    static func isOwn(_ name: String) -> Bool {
        Segment.number(of: name) != nil || ["captures.lock", "captures.marks", "captures.marks.new"].contains(name)
    }

    /// The segments of a folder, and the highest number of a file name. Truncated rows are cut off, and files with other content
    /// than their names imply are removed. Without `repairs` the files are not changed, because another process writes them.
    static func read(_ path: String, repairs: Bool = true) -> (segments: [Segment], highest: Int) {
        var segments: [Segment] = []
        var highest = 0
        for (number, isRows) in names(path).compactMap(Segment.number) {
            highest = max(highest, number)
            let segment = Segment(number: number)
            if !isRows {
                // Data without rows, because a process ended before it wrote them.
                if repairs, access(segment.rows(in: path), F_OK) != 0 { unlink(segment.data(in: path)) }
            } else if let known = readSegment(segment, path, repairs: repairs) {
                segments.append(known)
            } else if repairs {
                segment.remove(from: path)
            }
        }
        return (segments, highest)
    }

    private static func readSegment(_ empty: Segment, _ path: String, repairs: Bool) -> Segment? {
        guard let rows = try? OpenFile(empty.rows(in: path)), let rowBytes = rows.size,
            let dataBytes = (try? OpenFile(empty.data(in: path)))?.size
        else { return nil }
        switch Segment.readHead(rows.read(at: 0, count: Segment.headBytes), number: empty.number) {
        case .foreign where !repairs: return nil
        case .foreign:
            WareLog.shared.log(
                .warning, "captures \(path): \(empty.rows(in: path)) is not a file of captures, and is removed")
            return nil
        case .sealed(let segment)
        where segment.rowBytes == rowBytes && segment.dataBytes == dataBytes
            && segment.count > 0:
            return segment
        case .sealed, .open: break
        }
        var segment = empty
        // No valid segment is longer.
        let bytes = rows.read(at: 0, count: min(rowBytes, 64 << 20))
        segment.rowBytes = Segment.forEachRow(bytes) { frame, row, _ in
            var reader = RecordReader(row)
            guard let id = try? reader.number(), id > 0, frame.dataOffset <= dataBytes - frame.dataLength else {
                return true
            }
            segment.count += 1
            segment.lowest = min(segment.lowest, id)
            segment.highest = max(segment.highest, id)
            return true
        }
        segment.dataBytes = dataBytes
        if repairs, segment.rowBytes < rowBytes { truncate(empty.rows(in: path), off_t(segment.rowBytes)) }
        return segment.count > 0 ? segment : nil
    }
}
