import HttpWare

/// Appends captures to a new segment. Incomplete writes are removed again.
final class SegmentWriter {
    private(set) var segment: Segment
    private let folder: String
    private let rows: OpenFile
    private let data: OpenFile
    /// The rows and the data that are not in the files yet, and the segment that includes them.
    private var waitingRows: [UInt8] = []
    private var waitingData: [UInt8] = []
    private var next: Segment

    /// The number of waiting bytes at which they are written.
    private static let step = 1 << 20

    init(_ number: Int, in folder: String) throws(SystemError) {
        segment = Segment(number: number)
        next = segment
        self.folder = folder
        data = try OpenFile(segment.data(in: folder), makes: true)
        do throws(SystemError) {
            rows = try OpenFile(segment.rows(in: folder), makes: true)
            try rows.write(Segment.openHead, at: 0)
        } catch {
            segment.remove(from: folder)
            throw error
        }
    }

    /// Its size, including the waiting bytes.
    var bytes: Int { next.bytes }

    /// The size of a capture in the files.
    static func room(row: Int, data: Int) -> Int { Segment.Frame.bytes + row + data }

    func append(id: Int, row: [UInt8], data: [UInt8]) throws(SystemError) {
        let frame = Segment.Frame(rowLength: row.count, dataOffset: next.dataBytes, data: data)
        waitingRows += row.withUnsafeBytes { frame.written(with: $0) }
        waitingData += data
        next.rowBytes += Segment.Frame.bytes + row.count
        next.dataBytes += data.count
        next.count += 1
        next.lowest = min(next.lowest, id)
        next.highest = max(next.highest, id)
        if waitingRows.count + waitingData.count > SegmentWriter.step { try flush() }
    }

    /// Writes the waiting bytes. The data goes first, so that a row never refers to missing data.
    func flush() throws(SystemError) {
        do throws(SystemError) {
            try data.write(waitingData, at: segment.dataBytes)
            try rows.write(waitingRows, at: segment.rowBytes)
            segment = next
        } catch {
            data.cut(to: segment.dataBytes)
            rows.cut(to: segment.rowBytes)
            next = segment
            waitingRows = []
            waitingData = []
            throw error
        }
        waitingRows.removeAll(keepingCapacity: waitingRows.count < 2 * SegmentWriter.step)
        waitingData.removeAll(keepingCapacity: waitingData.count < 2 * SegmentWriter.step)
    }

    /// Completes the segment: its head summarizes the content. If that cannot be written, the rows are read instead.
    func seal() { try? rows.write(segment.sealedHead, at: 0) }
}
