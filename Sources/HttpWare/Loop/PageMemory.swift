import Glibc

/// Bytes in separate pages, written once: the kernel sends them to a socket directly, without a copy. mmap(2),
/// vmsplice(2).
///
/// The pages are never shared or reused. When the last reference is released, the kernel keeps the pages that it is still sending.
///
/// Unchecked: the creator writes it before sharing it; from then on it is only read, on any thread.
public final class PageMemory: @unchecked Sendable {
    private let base: UnsafeMutableRawPointer
    private var length: Int
    /// The number of bytes written.
    public private(set) var count = 0

    private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    /// Shorter contents are sent from the heap: the additional calls cost more than they save.
    public static let least = 32 * 1024

    /// Makes room for this many bytes, which use memory as they are written; `nil` if the system has none.
    public init?(capacity: Int) {
        guard capacity > 0, capacity <= Int.max - PageMemory.page else { return nil }
        let length = (capacity + PageMemory.page - 1) / PageMemory.page * PageMemory.page
        guard let base = PageArea.shared.withLock({ $0.takePages(length) }) ?? PageArea.map(length) else { return nil }
        self.base = base
        self.length = length
    }

    deinit { PageArea.unmap(base, length) }

    /// The memory use in bytes, in whole pages.
    public var size: Int { length }

    /// Appends bytes. Returns false if there is not enough room.
    public func append(_ bytes: [UInt8]) -> Bool {
        guard bytes.count <= length - count else { return false }
        bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { (base + count).copyMemory(from: start, byteCount: bytes.count) }
        }
        count += bytes.count
        return true
    }

    /// Releases the unused room.
    public func trim() {
        let needed = max(1, (count + PageMemory.page - 1) / PageMemory.page) * PageMemory.page
        guard needed < length else { return }
        PageArea.unmap(base + needed, length - needed)
        length = needed
    }

    /// A copy of the written bytes in that range.
    public func bytes(_ range: Range<Int>) -> [UInt8] { Array(written(range)) }

    func written(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        let range = range.clamped(to: 0..<count)
        return UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }
}

/// Bytes that go to a socket without passing through this process: through a pipe, or from a file.
protocol UnseenBytes: AnyObject {
    /// The number of bytes left.
    var count: Int { get }
    /// Sends as much as the socket takes.
    func drain(to socket: Int32) -> Socket.Transfer
    /// The pipe, for reuse when no bytes are left; `nil` without one.
    var pipe: Pipe? { get }
}

/// A range of memory pages that is being sent.
final class PagesOnTheirWay: UnseenBytes {
    var pipe: Pipe? { through }
    private let through: Pipe
    private let memory: PageMemory
    private var left: Range<Int>

    /// Sends through an empty pipe.
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
