import CSystemShims
import Glibc

/// A regular file that is open for reading, at any offset and by several readers. The last reference closes it.
public final class OpenedFile: Sendable {
    let descriptor: Int32
    /// The file's status when it was opened.
    public let status: FileStatus

    /// The result of reading without waiting.
    public enum Reading: Sendable {
        /// At least one byte.
        case bytes([UInt8])
        /// The file ends before the offset.
        case end
        /// The read would wait for the disk, or the file system cannot tell.
        case wouldWait
        /// The file cannot be read, with this `errno`.
        case failed(Int32)
    }

    private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    /// If the system cannot count cached pages, one of this many pages is checked.
    private static let sampled = 16

    /// Takes over a descriptor.
    init(_ descriptor: Int32, _ status: FileStatus) {
        self.descriptor = descriptor
        self.status = status
    }

    deinit { Glibc.close(descriptor) }

    /// The size in bytes when it was opened.
    public var size: Int { Int(clamping: status.size) }

    /// Reads at most `count` bytes from the offset, as far as they are in memory.
    public func readCached(at offset: Int, atMost count: Int) -> Reading {
        read(count) { buffer, count in self.readCached(buffer, count, offset) }
    }

    /// Reads at most `count` bytes from the offset, and waits for the disk: not for use on loops.
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

    /// A file system without a disk never waits.
    private func readCached(_ buffer: UnsafeMutableRawPointer?, _ count: Int, _ offset: Int) -> Int {
        let result = csystem_read_cached(descriptor, buffer, UInt(count), offset)
        guard result < 0, errno == EOPNOTSUPP else { return result }
        if csystem_is_in_memory(descriptor) == 1 { return pread(descriptor, buffer, count, off_t(offset)) }
        errno = EOPNOTSUPP
        return result
    }

    /// Whether that part of the file is in memory, so that sending it does not wait for the disk. False if that is unknown.
    ///
    /// From Linux 6.5 on, the kernel counts the cached pages of files that the process owns or may write. The count includes pages that are
    /// still being read from the disk, so the last page is read as a check. For other files, the first byte of each 16th page is read:
    /// the kernel usually reads ahead, and evicts, longer ranges than that.
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

/// A part of a file that is being sent to a socket.
final class FileOnItsWay: UnseenBytes {
    private let file: OpenedFile
    private var left: Range<Int>
    /// Whether the socket took less than it was given, and so takes no more now.
    private var isFull = false

    init(_ file: OpenedFile, _ range: Range<Int>) {
        self.file = file
        left = range
    }

    var count: Int { left.count }
    var pipe: Pipe? { nil }

    /// Fails if the file has become shorter: the missing bytes must not be replaced.
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
