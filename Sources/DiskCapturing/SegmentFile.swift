import Glibc
import HttpCaching
import HttpWare

/// A pair of files with captures in the order in which they ended: `.rows`, which lists and filters read, and `.data` with the
/// rest of each. Both are append-only. Every row and every rest has a checksum, so truncated or damaged captures are detected
/// and left out.
struct Segment: Sendable {
    /// The number in the names of its files.
    let number: Int
    /// The lowest and the highest number of its captures.
    var lowest = Int.max
    var highest = 0
    var count = 0
    /// The sizes of its files.
    var rowBytes = Segment.headBytes
    var dataBytes = 0

    var bytes: Int { rowBytes + dataBytes }

    /// The sizes and the position of a row and its rest.
    struct Frame {
        static let bytes = 32
        let rowLength: Int
        let dataLength: Int
        let dataOffset: Int
        let dataChecksum: UInt64

        init(rowLength: Int, dataOffset: Int, data: [UInt8]) {
            self.init(
                rowLength: rowLength, dataOffset: dataOffset, dataLength: data.count, dataChecksum: Checksum.of(data))
        }

        init(rowLength: Int, dataOffset: Int, dataLength: Int, dataChecksum: UInt64) {
            self.rowLength = rowLength
            self.dataLength = dataLength
            self.dataOffset = dataOffset
            self.dataChecksum = dataChecksum
        }

        /// The frame at the beginning of these bytes, followed by its whole row; `nil` if they are incomplete.
        init?(_ bytes: UnsafeRawBufferPointer) {
            guard bytes.count >= Frame.bytes else { return nil }
            rowLength = Int(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)))
            dataLength = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
            let offset = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            dataChecksum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
            guard rowLength > 0, rowLength <= bytes.count - Frame.bytes, offset < 1 << 48 else { return nil }
            dataOffset = Int(offset)
        }

        /// Whether the frame and the row after it are undamaged.
        func isIntact(_ bytes: UnsafeRawBufferPointer) -> Bool {
            let sum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
            return sum
                == Frame.sum(
                    UnsafeRawBufferPointer(rebasing: bytes[..<24]),
                    UnsafeRawBufferPointer(rebasing: bytes[Frame.bytes..<Frame.bytes + rowLength]))
        }

        private static func sum(_ head: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer) -> UInt64 {
            Checksum.of(RawSpan(_unsafeBytes: head)) ^ (Checksum.of(RawSpan(_unsafeBytes: row)) &* 3)
        }

        /// The frame with its row.
        func written(with row: UnsafeRawBufferPointer) -> [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(Frame.bytes + row.count)
            withUnsafeBytes(of: UInt32(truncatingIfNeeded: rowLength).littleEndian) { bytes += $0 }
            withUnsafeBytes(of: UInt32(truncatingIfNeeded: dataLength).littleEndian) { bytes += $0 }
            withUnsafeBytes(of: UInt64(dataOffset).littleEndian) { bytes += $0 }
            withUnsafeBytes(of: dataChecksum.littleEndian) { bytes += $0 }
            let sum = bytes.withUnsafeBytes { Frame.sum($0, row) }
            withUnsafeBytes(of: sum.littleEndian) { bytes += $0 }
            return bytes + row
        }
    }

    // MARK: The head

    /// The size of the head of `.rows`. It contains the kind of file and, once the segment is complete, a summary.
    static let headBytes = 72
    private static let sort = Array("httpware-rows-1\n".utf8)

    static var openHead: [UInt8] { sort + [UInt8](repeating: 0, count: headBytes - sort.count) }

    var sealedHead: [UInt8] {
        var head = Segment.sort
        for value in [lowest, highest, count, rowBytes, dataBytes, number] {
            withUnsafeBytes(of: UInt64(value).littleEndian) { head += $0 }
        }
        withUnsafeBytes(of: Checksum.of(head).littleEndian) { head += $0 }
        return head
    }

    /// The content of a head.
    enum Head {
        case foreign
        /// The segment was not completed, so its rows must be read.
        case open
        case sealed(Segment)
    }

    static func readHead(_ head: [UInt8], number: Int) -> Head {
        guard head.count == headBytes, head.starts(with: sort) else { return .foreign }
        let values = head.withUnsafeBytes { head in
            stride(from: sort.count, to: headBytes, by: 8).map {
                UInt64(littleEndian: head.loadUnaligned(fromByteOffset: $0, as: UInt64.self))
            }
        }
        guard values[6] == Checksum.of(Array(head[..<(headBytes - 8)])), values.dropLast().allSatisfy({ $0 < 1 << 62 })
        else { return .open }
        var segment = Segment(number: number)
        segment.lowest = Int(values[0])
        segment.highest = Int(values[1])
        segment.count = Int(values[2])
        segment.rowBytes = Int(values[3])
        segment.dataBytes = Int(values[4])
        return .sealed(segment)
    }

    // MARK: Names

    func rows(in folder: String) -> String { "\(folder)/captures-\(number).rows" }
    func data(in folder: String) -> String { "\(folder)/captures-\(number).data" }

    /// The number in a file name, and whether it is a file of rows; `nil` for other files.
    static func number(of name: String) -> (number: Int, isRows: Bool)? {
        guard name.hasPrefix("captures-") else { return nil }
        let isRows = name.hasSuffix(".rows")
        guard isRows || name.hasSuffix(".data"), let number = Int(name.dropFirst(9).dropLast(5)), number > 0,
            name == "captures-\(number)" + (isRows ? ".rows" : ".data")
        else { return nil }
        return (number, isRows)
    }

    /// Removes its files. The rows go first, because data without rows is ignored.
    func remove(from folder: String) {
        unlink(rows(in: folder))
        unlink(data(in: folder))
    }

    // MARK: Rows

    /// The places of all complete frames, damaged or not.
    static func places(_ bytes: UnsafeRawBufferPointer) -> [Int] {
        var places: [Int] = []
        var at = min(headBytes, bytes.count)
        while let frame = Frame(UnsafeRawBufferPointer(rebasing: bytes[at...])) {
            places.append(at)
            at += Frame.bytes + frame.rowLength
        }
        return places
    }

    /// Calls `body` with each undamaged row, its frame and its place, until it returns false. Skips damaged rows. Returns the
    /// place after the last complete frame, or the place at which `body` returned false.
    static func forEachRow(
        _ bytes: [UInt8], _ body: (Frame, UnsafeRawBufferPointer, Int) -> Bool
    ) -> Int {
        bytes.withUnsafeBytes { bytes in
            var at = min(headBytes, bytes.count)
            while let frame = Frame(UnsafeRawBufferPointer(rebasing: bytes[at...])) {
                let end = at + Frame.bytes + frame.rowLength
                if frame.isIntact(UnsafeRawBufferPointer(rebasing: bytes[at..<end])) {
                    guard body(frame, UnsafeRawBufferPointer(rebasing: bytes[(at + Frame.bytes)..<end]), at) else {
                        return at
                    }
                }
                at = end
            }
            return at
        }
    }
}

/// An open file, closed when the last reference to it is released.
final class OpenFile: Sendable {
    private let descriptor: Int32

    /// Opens a file for reading, or creates one for writing.
    init(_ path: String, makes: Bool = false) throws(SystemError) {
        let flags = makes ? O_RDWR | O_CREAT | O_EXCL : O_RDONLY
        descriptor = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("open", code: errno) }
    }

    deinit { close(descriptor) }

    /// The size of a regular file; `nil` for any other kind.
    var size: Int? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(status.st_size)
    }

    /// The bytes at an offset; fewer than `count` at the end of the file.
    func read(at offset: Int, count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: max(0, count)) { buffer, filled in
            while filled < count {
                let got = pread(descriptor, buffer.baseAddress! + filled, count - filled, off_t(offset + filled))
                if got < 0, errno == EINTR { continue }
                if got <= 0 { break }
                filled += got
            }
        }
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let put = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress! + done, bytes.count - done, off_t(offset + done))
            }
            if put < 0, errno == EINTR { continue }
            guard put > 0 else { throw SystemError("write", code: put == 0 ? ENOSPC : errno) }
            done += put
        }
    }

    /// Removes the remainder of a failed write.
    func cut(to size: Int) { _ = ftruncate(descriptor, off_t(size)) }
}
