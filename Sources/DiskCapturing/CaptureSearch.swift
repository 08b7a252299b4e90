import Capturing

/// Visits the captures of segments in descending order of their numbers. A segment is opened only when its highest number is
/// next, so the newest captures are found before older segments are read.
struct CaptureSearch {
    private struct Opened {
        let reader: SegmentReader
        var rows: [(id: Int, place: Int)]
    }

    private let folder: String
    private let before: Int
    private let filter: RowFilter?
    /// In ascending order of their highest numbers.
    private var closed: [Segment]
    private var opened: [Opened] = []

    /// `segments` are sorted by their highest numbers, descending. Rows that cannot match are skipped.
    init(_ segments: [Segment], in folder: String, before: Int, _ filter: RowFilter?) {
        closed = segments.reversed()
        self.folder = folder
        self.before = before
        self.filter = filter
    }

    /// An upper limit of the remaining numbers; `nil` at the end.
    var newest: Int? {
        let next = closed.last.map { min($0.highest, before - 1) }
        guard let place = first else { return next }
        return max(opened[place].rows.last?.id ?? 0, next ?? 0)
    }

    private var first: Int? {
        opened.indices.max { opened[$0].rows.last?.id ?? 0 < opened[$1].rows.last?.id ?? 0 }
    }

    /// The row with the number `newest`. `nil` if a segment was opened instead; `newest` may then be lower.
    mutating func take() -> (SegmentReader, place: Int)? {
        let id = first.flatMap { opened[$0].rows.last?.id } ?? 0
        if let segment = closed.last, min(segment.highest, before - 1) >= id {
            closed.removeLast()
            guard let reader = SegmentReader(segment, in: folder) else { return nil }
            let rows = reader.places(filter) { $0 < before }
            if !rows.isEmpty { opened.append(Opened(reader: reader, rows: rows)) }
            return nil
        }
        guard let place = first, let row = opened[place].rows.popLast() else { return nil }
        let reader = opened[place].reader
        if opened[place].rows.isEmpty { opened.remove(at: place) }
        return (reader, row.place)
    }
}
