import Glibc
import HttpCaching
import HttpWare

/// The pins and comments that users set on captures in files. They are in a small separate file, which is replaced as a
/// whole.
struct CaptureMarks: Sendable {
    struct Mark: Sendable, Equatable {
        var isPinned: Bool?
        var comment: String?
    }

    private(set) var marks: [Int: Mark] = [:]
    /// The most bytes of the file.
    let limit: Int

    private static let sort = Array("httpware-marks-1".utf8)

    init(limit: Int) { self.limit = limit }

    var isEmpty: Bool { marks.isEmpty }

    subscript(_ id: Int) -> Mark? { marks[id] }

    /// Returns false if there are too many marks.
    mutating func set(_ id: Int, pinned: Bool?, comment: String?) -> Bool {
        var mark = marks[id] ?? Mark()
        if let pinned { mark.isPinned = pinned }
        if let comment { mark.comment = comment }
        let former = marks.updateValue(mark, forKey: id)
        guard bytes.count <= limit else {
            marks[id] = former
            return false
        }
        return true
    }

    mutating func remove(_ ids: some Sequence<Int>) { for id in ids { marks[id] = nil } }

    private var bytes: [UInt8] {
        var record = RecordWriter()
        record.list(marks.sorted { $0.key < $1.key }) { record, entry in
            record.number(entry.key)
            record.optional(entry.value.isPinned) { $0.flag($1) }
            record.optional(entry.value.comment)
        }
        var bytes = CaptureMarks.sort
        withUnsafeBytes(of: Checksum.of(record.bytes).littleEndian) { bytes += $0 }
        return bytes + record.bytes
    }

    // MARK: The file

    static func path(in folder: String) -> String { "\(folder)/captures.marks" }

    func write(to folder: String) throws(SystemError) {
        let path = CaptureMarks.path(in: folder)
        let fresh = path + ".new"
        unlink(fresh)
        do throws(SystemError) {
            try OpenFile(fresh, makes: true).write(bytes, at: 0)
            guard rename(fresh, path) == 0 else { throw SystemError("rename", code: errno) }
        } catch {
            unlink(fresh)
            throw error
        }
    }

    /// Reads the marks of a folder; empty if the file is missing or damaged.
    init(of folder: String, limit: Int) {
        self.limit = limit
        guard let file = try? OpenFile(CaptureMarks.path(in: folder)), let size = file.size, size <= limit, size >= 24
        else { return }
        let bytes = file.read(at: 0, count: size)
        guard bytes.count == size, bytes.starts(with: CaptureMarks.sort) else { return }
        let sum = bytes.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 16, as: UInt64.self)) }
        let rest = Array(bytes[24...])
        guard sum == Checksum.of(rest) else { return }
        rest.withUnsafeBytes { rest in
            var record = RecordReader(rest)
            do throws(DamagedRecord) {
                for _ in 0..<(try record.count()) {
                    let id = try record.number()
                    var mark = Mark()
                    mark.isPinned = try record.optional { (record) throws(DamagedRecord) in try record.flag() }
                    mark.comment = try record.optional { (record) throws(DamagedRecord) in try record.text() }
                    marks[id] = mark
                }
            } catch {
                marks = [:]
            }
        }
    }
}
