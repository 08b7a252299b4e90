import CSystemShims
import Glibc

/// A regular file that is open for reading, at any place and by several readers. The last reference closes it.
public final class OpenedFile: Sendable {
    let descriptor: Int32
    /// What the file was when it was opened.
    public let status: FileStatus

    /// What came of reading without waiting.
    public enum Reading: Sendable {
        /// At least one byte.
        case bytes([UInt8])
        /// The file ends before that place.
        case end
        /// The disk would have to be waited for, or the file system cannot tell.
        case wouldWait
        /// The file cannot be read, with this `errno`.
        case failed(Int32)
    }

    private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    /// Where the system does not count pages, every so many of them are looked at.
    private static let sampled = 16

    /// Takes over a descriptor.
    init(_ descriptor: Int32, _ status: FileStatus) {
        self.descriptor = descriptor
        self.status = status
    }

    deinit { Glibc.close(descriptor) }

    /// In bytes, when it was opened.
    public var size: Int { Int(clamping: status.size) }

    /// Reads at most so many bytes from that place on, as far as they are in memory.
    public func readCached(at offset: Int, atMost count: Int) -> Reading {
        read(count) { buffer, count in self.readCached(buffer, count, offset) }
    }

    /// Reads at most so many bytes from that place on, and waits for the disk: not for loops.
    public func read(at offset: Int, atMost count: Int) -> Reading {
        var all: [UInt8] = []
        while all.count < count {
            let next = read(count - all.count) { buffer, count in
                pread(self.descriptor, buffer, count, off_t(offset + all.count))
            }
            guard case .bytes(let bytes) = next else { return all.isEmpty ? next : .bytes(all) }
            if all.isEmpty { all = bytes } else { all += bytes }
        }
        return .bytes(all)
    }

    private func read(_ count: Int, _ call: (UnsafeMutableRawPointer?, Int) -> Int) -> Reading {
        var result = 0
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: max(1, count)) { buffer, initialized in
            repeat {
                result = call(buffer.baseAddress, count)
                code = errno
            } while result < 0 && code == EINTR
            initialized = max(0, result)
        }
        if result > 0 { return .bytes(bytes) }
        if result == 0 { return .end }
        return code == EAGAIN || code == EOPNOTSUPP || code == ENOSYS || code == EINVAL ? .wouldWait : .failed(code)
    }

    /// A file system without a disk knows nothing of waiting.
    private func readCached(_ buffer: UnsafeMutableRawPointer?, _ count: Int, _ offset: Int) -> Int {
        let result = csystem_read_cached(descriptor, buffer, UInt(count), offset)
        guard result < 0, errno == EOPNOTSUPP else { return result }
        if csystem_is_in_memory(descriptor) == 1 { return pread(descriptor, buffer, count, off_t(offset)) }
        errno = EOPNOTSUPP
        return result
    }

    /// Whether that part of the file is in memory, so that to send it waits for no disk. False where nobody can tell.
    ///
    /// The kernel counts the pages of files that the process owns or may write, from Linux 6.5 on, and with them those that are on their
    /// way from the disk: so the last is read. Of other files the first byte of each 16th page is: what the kernel reads
    /// ahead, and what it takes away, are mostly longer runs than that.
    public func isCached(_ range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return true }
        let first = range.lowerBound / OpenedFile.page
        let last = (range.upperBound - 1) / OpenedFile.page
        let counted = csystem_cached_pages(descriptor, range.lowerBound, range.count)
        if counted >= 0, counted < last - first + 1 { return false }
        var byte: UInt8 = 0
        var place = counted >= 0 ? last : first
        while true {
            guard readCached(&byte, 1, max(range.lowerBound, place * OpenedFile.page)) == 1 else { return false }
            if place == last { return true }
            place = min(place + OpenedFile.sampled, last)
        }
    }
}

/// A part of a file on its way to a socket.
final class FileOnItsWay: UnseenBytes {
    private let file: OpenedFile
    private var left: Range<Int>
    /// The socket took less than it was given: it takes no more now.
    private var isFull = false

    init(_ file: OpenedFile, _ range: Range<Int>) {
        self.file = file
        left = range
    }

    var count: Int { left.count }
    var pipe: Pipe? { nil }

    /// Fails where the file has become shorter: nothing may stand in for what is missing.
    func drain(to socket: Int32) -> Socket.Transfer {
        if isFull {
            isFull = false
            return .wouldBlock
        }
        while true {
            let sent = csystem_send_file(socket, file.descriptor, left.lowerBound, UInt(left.count))
            if sent > 0 {
                left = (left.lowerBound + min(sent, left.count))..<left.upperBound
                isFull = !left.isEmpty
                return .bytes(sent)
            }
            if sent == 0 { return .failed(ENODATA) }
            if errno != EINTR { return errno == EAGAIN ? .wouldBlock : .failed(errno) }
        }
    }
}
