import Glibc

/// Bytes in pages of their own, written once: the kernel sends them to a socket from where they are, without a copy. mmap(2),
/// vmsplice(2).
///
/// The pages are nobody else's, before and after: what the kernel still sends when the last reference goes, it keeps.
///
/// Unchecked: whoever makes it writes it before anybody else has it; from then on it is only read, on any thread.
public final class PageMemory: @unchecked Sendable {
    private let base: UnsafeMutableRawPointer
    private var length: Int
    /// How many bytes were written.
    public private(set) var count = 0

    private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    /// Less than this is sent from the heap: more calls cost more than they save.
    public static let least = 32 * 1024

    /// Room for so many bytes, which take memory as they are written; `nil` when the system has none to give.
    public init?(capacity: Int) {
        guard capacity > 0, capacity <= Int.max - PageMemory.page else { return nil }
        let length = (capacity + PageMemory.page - 1) / PageMemory.page * PageMemory.page
        guard let base = PageArea.shared.withLock({ $0.takePages(length) }) ?? PageArea.map(length) else { return nil }
        self.base = base
        self.length = length
    }

    deinit { PageArea.unmap(base, length) }

    /// Bytes of memory that it takes, whole pages.
    public var size: Int { length }

    /// Adds bytes behind those that were written. Answers false when there is no room for all of them.
    public func append(_ bytes: [UInt8]) -> Bool {
        guard bytes.count <= length - count else { return false }
        bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { (base + count).copyMemory(from: start, byteCount: bytes.count) }
        }
        count += bytes.count
        return true
    }

    /// Gives back the room that nothing was written to.
    public func trim() {
        let needed = max(1, (count + PageMemory.page - 1) / PageMemory.page) * PageMemory.page
        guard needed < length else { return }
        PageArea.unmap(base + needed, length - needed)
        length = needed
    }

    /// A copy of the bytes in that range, as far as they were written.
    public func bytes(_ range: Range<Int>) -> [UInt8] { Array(written(range)) }

    func written(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        let range = range.clamped(to: 0..<count)
        return UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }
}

/// What goes to a socket without passing through this process: by a pipe, or from a file.
protocol UnseenBytes: AnyObject {
    /// How many bytes are left.
    var count: Int { get }
    /// Gives a socket what it takes.
    func drain(to socket: Int32) -> Socket.Transfer
    /// The pipe, to be used again when nothing is left; `nil` without one.
    var pipe: Pipe? { get }
}

/// Some bytes of pages on their way.
final class PagesOnTheirWay: UnseenBytes {
    var pipe: Pipe? { through }
    private let through: Pipe
    private let memory: PageMemory
    private var left: Range<Int>

    /// Through an empty pipe.
    init(_ memory: PageMemory, _ range: Range<Int>, through pipe: Pipe) {
        self.memory = memory
        through = pipe
        left = range.clamped(to: 0..<memory.count)
    }

    var count: Int { through.count + left.count }

    func drain(to socket: Int32) -> Socket.Transfer {
        if through.count == 0 {
            let result = through.fill(from: memory.written(left))
            guard case .bytes(let count) = result, count > 0 else { return result }
            left = (left.lowerBound + count)..<left.upperBound
        }
        return through.drain(to: socket)
    }
}
