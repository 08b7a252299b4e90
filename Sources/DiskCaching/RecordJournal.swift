import Glibc
import HttpCaching
import HttpWare

/// The file of the records of a disk store: each change is appended, with a checksum. When the file is read, later changes win. It
/// is written again when most of it is out of date. A change that was cut off at the end of the file is removed; a damaged one is
/// passed over. Used on one thread at a time, never on a loop.
///
/// The file begins with `HWr2` and a random mark. Each change begins with the same mark. Records hold bytes of clients and of
/// origin servers, which do not know the mark, so their bytes cannot be read as a change behind damage.
///
/// | part of a change | bytes |
/// |---|---|
/// | mark | 8 |
/// | length of the rest behind the checksum | 4 |
/// | checksum of the rest | 8 |
/// | key | 32 |
/// | end, in nanoseconds since 1970; 0 if the record is removed | 8 |
/// | the record | the rest |
struct RecordJournal {
    /// The random bytes with which each change of a file begins.
    struct Mark: Equatable {
        let bytes: [UInt8]

        static let count = 8
        /// The bytes in front of the mark at the beginning of a file.
        static let version: [UInt8] = Array("HWr2".utf8)

        /// A mark for a new file.
        init() {
            var random = SystemRandomNumberGenerator()
            bytes = (0..<Mark.count).map { _ in UInt8.random(in: 0...255, using: &random) }
        }

        /// The mark at the beginning of a file; `nil` if the file begins otherwise.
        init?(fileHead: ArraySlice<UInt8>) {
            guard fileHead.count == Mark.version.count + Mark.count, fileHead.starts(with: Mark.version) else {
                return nil
            }
            bytes = Array(fileHead.dropFirst(Mark.version.count))
        }

        /// The beginning of a file.
        var fileHead: [UInt8] { Mark.version + bytes }

        static let fileHeadBytes = version.count + count
    }

    /// A change of one record.
    struct Change: Equatable {
        let key: Digest256
        /// The end, in nanoseconds since 1970; 0 if the record is removed.
        let end: Int64
        let bytes: [UInt8]

        static let headBytes = Mark.count + 12
        /// The length of the key and the end.
        static let fixedBytes = 40
        /// The maximum length of a record.
        static let longest = 16 << 20

        /// The number of bytes in the file.
        var count: Int { Change.headBytes + Change.fixedBytes + bytes.count }

        /// The bytes in a file with this mark.
        func frame(_ mark: Mark) -> [UInt8] {
            var rest = ByteWriter()
            rest.bytes = key.bytes
            rest.add(end)
            rest.bytes += bytes
            var output = ByteWriter()
            output.bytes = mark.bytes
            output.add(UInt32(clamping: rest.bytes.count))
            output.add(Checksum.of(rest.bytes))
            return output.bytes + rest.bytes
        }
    }

    /// The result of reading at a place of the bytes.
    enum Reading: Equatable {
        case change(Change, count: Int)
        /// More bytes are needed.
        case cutOff
        case damaged
    }

    /// Reads a change at the beginning of the bytes.
    static func read(_ bytes: ArraySlice<UInt8>, _ mark: Mark) -> Reading {
        guard mark.bytes.starts(with: bytes.prefix(Mark.count)) else { return .damaged }
        guard bytes.count >= Change.headBytes else { return .cutOff }
        let head = Array(bytes.dropFirst(Mark.count).prefix(12))
        let count = head.withUnsafeBytes { Int(UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self))) }
        let sum = head.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 4, as: UInt64.self)) }
        guard count >= Change.fixedBytes, count <= Change.fixedBytes + Change.longest else { return .damaged }
        guard bytes.count >= Change.headBytes + count else { return .cutOff }
        let rest = Array(bytes.dropFirst(Change.headBytes).prefix(count))
        guard Checksum.of(rest) == sum, let key = Digest256(bytes: rest.prefix(32)) else { return .damaged }
        let end = rest.withUnsafeBytes { Int64(littleEndian: $0.loadUnaligned(fromByteOffset: 32, as: Int64.self)) }
        return .change(
            Change(key: key, end: end, bytes: Array(rest.dropFirst(Change.fixedBytes))),
            count: Change.headBytes + count)
    }

    /// Reads the changes in the bytes of a file that come piece by piece. Damage is passed over up to the next change.
    struct Scanner {
        /// The mark at the beginning of the file; `nil` before it was read, and if the file begins otherwise.
        private(set) var mark: Mark?
        private var bytes: [UInt8] = []
        /// The number of bytes before the present ones.
        private var before = 0
        /// The end of the last whole change or of the file's head, in bytes from the beginning.
        private(set) var end = 0
        /// The number of damaged places.
        private(set) var damages = 0
        private var isDamaged = false

        /// Takes the next piece, and passes the changes that are complete to `body`. `isEnd` says that no piece follows.
        mutating func take(_ piece: ArraySlice<UInt8>, isEnd: Bool, _ body: (Change) -> Void) {
            bytes += piece
            guard let mark = mark ?? readHead(isEnd: isEnd) else { return }
            var place = 0
            reading: while place < bytes.count {
                switch RecordJournal.read(bytes[place...], mark) {
                case .change(let change, let count):
                    body(change)
                    place += count
                    end = before + place
                    isDamaged = false
                case .cutOff where !isEnd: break reading
                case .cutOff where !isDamaged && !hasChange(behind: place, mark):
                    // The program ended while it wrote this.
                    place = bytes.count
                case .cutOff, .damaged:
                    if !isDamaged { damages += 1 }
                    isDamaged = true
                    place = bytes[(place + 1)...].firstIndex(of: mark.bytes[0]) ?? bytes.count
                }
            }
            bytes.removeFirst(place)
            before += place
        }

        /// Reads the beginning of the file. A file that begins otherwise has no changes.
        private mutating func readHead(isEnd: Bool) -> Mark? {
            guard damages == 0, bytes.count >= Mark.fileHeadBytes else {
                if isEnd, !bytes.isEmpty { damages = 1 }
                if damages > 0 { bytes = [] }
                return nil
            }
            mark = Mark(fileHead: bytes.prefix(Mark.fileHeadBytes))
            damages = mark == nil ? 1 : 0
            guard mark != nil else {
                bytes = []
                return nil
            }
            bytes.removeFirst(Mark.fileHeadBytes)
            before = Mark.fileHeadBytes
            end = before
            return mark
        }

        /// Whether a whole change follows behind a place at the end of the file, so that the place is damage.
        private func hasChange(behind place: Int, _ mark: Mark) -> Bool {
            var next = place + 1
            while let found = bytes[next...].firstIndex(of: mark.bytes[0]) {
                if case .change = RecordJournal.read(bytes[found...], mark) { return true }
                next = found + 1
            }
            return false
        }
    }

    // MARK: The file

    private let path: String
    private var descriptor: Int32 = -1
    private var lock: Int32 = -1
    private var mark = Mark()
    /// The length of the file, up to the end of the last whole change.
    private(set) var length = 0

    init(path: String) { self.path = path }

    /// The folder or the file cannot be used.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ call: String) { description = "\(SystemError(call))" }
        init(text: String) { description = text }
    }

    /// The damage that was found when the file was opened.
    enum Damage: Equatable {
        case places(Int)
        /// The file does not begin as one of records: it was renamed to this path, and a new one was begun.
        case movedAside(String)
    }

    /// Opens the file, and passes its changes to `body`, in order.
    mutating func open(_ body: (Change) -> Void) throws(Failure) -> Damage {
        lock = Glibc.open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else { throw Failure("open") }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close()
            throw Failure(text: "another process uses the records")
        }
        try openFile()
        var scanner = Scanner()
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = Glibc.read(descriptor, &piece, piece.count)
            guard count >= 0 else {
                if errno == EINTR { continue }
                let failure = Failure("read")
                close()
                throw failure
            }
            scanner.take(piece[..<count], isEnd: count == 0, body)
            if count == 0 { break }
        }
        length = scanner.end
        mark = scanner.mark ?? mark
        // A short one is the rest of a new file. A former one that was moved aside is not replaced.
        let isOther =
            scanner.mark == nil && scanner.damages > 0 && lseek(descriptor, 0, SEEK_END) >= Mark.fileHeadBytes
            && access(asidePath, F_OK) != 0
        if isOther { try moveAside() }
        guard ftruncate(descriptor, off_t(length)) == 0, length > 0 || appendHead() else {
            let failure = Failure("write")
            close()
            throw failure
        }
        return isOther ? .movedAside(asidePath) : .places(scanner.damages)
    }

    private mutating func openFile() throws(Failure) {
        descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor < 0 else { return }
        let failure = Failure("open")
        close()
        throw failure
    }

    private var asidePath: String { path + ".damaged" }

    /// Keeps the file for its owner, who may know why it begins otherwise.
    private mutating func moveAside() throws(Failure) {
        guard rename(path, asidePath) == 0 else {
            let failure = Failure("rename")
            close()
            throw failure
        }
        Glibc.close(descriptor)
        try openFile()
    }

    /// Writes the beginning of an empty file.
    private mutating func appendHead() -> Bool {
        guard RecordJournal.write(mark.fileHead, to: descriptor, at: 0) else { return false }
        length = Mark.fileHeadBytes
        return true
    }

    /// Appends changes, and waits until they are on the disk. If that fails, the file is as it was before.
    mutating func append(_ changes: [Change]) -> Bool {
        let frames = changes.flatMap { $0.frame(mark) }
        guard descriptor >= 0, RecordJournal.write(frames, to: descriptor, at: length), fdatasync(descriptor) == 0
        else {
            if descriptor >= 0 { _ = ftruncate(descriptor, off_t(length)) }
            return false
        }
        length += frames.count
        return true
    }

    /// Replaces the file by one with these changes only.
    mutating func rewrite(_ body: ((Change) -> Void) -> Void) -> Bool {
        let next = path + ".new"
        let made = Glibc.open(next, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard made >= 0 else { return false }
        var buffer = mark.fileHead
        var written = 0
        var isWritten = true
        body { change in
            buffer += change.frame(mark)
            guard buffer.count >= 1 << 20 else { return }
            isWritten = isWritten && RecordJournal.write(buffer, to: made, at: written)
            written += buffer.count
            buffer = []
        }
        isWritten = isWritten && RecordJournal.write(buffer, to: made, at: written)
        written += buffer.count
        guard isWritten, fsync(made) == 0, rename(next, path) == 0 else {
            Glibc.close(made)
            unlink(next)
            return false
        }
        Glibc.close(descriptor)
        descriptor = made
        length = written
        return true
    }

    mutating func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        if lock >= 0 { Glibc.close(lock) }
        (descriptor, lock, length) = (-1, -1, 0)
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32, at place: Int) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                // It is not empty, so it has an address.
                pwrite(descriptor, $0.baseAddress! + done, $0.count - done, off_t(place + done))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
