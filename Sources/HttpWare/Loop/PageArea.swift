import Glibc

/// Room for contents of known length, one behind the other, in 2 MiB that lie together in the machine's memory where the
/// system has such pages: a socket's queue names what lies together once, not page by page. madvise(2), MADV_HUGEPAGE.
///
/// Nothing is used twice, for what is given back may still be on its way: each gives its own part back to the system.
struct PageArea {
    static let shared = ThreadLock(PageArea())

    /// 0 before the first is there.
    private var next: UInt = 0
    private var left = 0

    private static let size = 2 << 20
    /// What is longer has pages of its own: the end of an area that the next one does not fit in is not used.
    private static let mostTaken = size / 4

    /// So many bytes, whole pages; `nil` where they are too many, or there is no memory.
    mutating func takePages(_ length: Int) -> UnsafeMutableRawPointer? {
        guard length <= PageArea.mostTaken else { return nil }
        if left < length { renew() }
        guard left >= length, let start = UnsafeMutableRawPointer(bitPattern: next) else { return nil }
        next += UInt(length)
        left -= length
        return start
    }

    private mutating func renew() {
        if let rest = UnsafeMutableRawPointer(bitPattern: next), left > 0 { PageArea.unmap(rest, left) }
        (next, left) = (0, 0)
        let size = PageArea.size
        // Twice as much, of which the part stays that begins at a multiple of its size.
        guard let base = PageArea.map(2 * size) else { return }
        let before = (size - Int(bitPattern: base) % size) % size
        if before > 0 { PageArea.unmap(base, before) }
        PageArea.unmap(base + before + size, size - before)
        // A system without such pages says no: the area does without.
        madvise(base + before, size, MADV_HUGEPAGE)
        (next, left) = (UInt(bitPattern: base + before), size)
    }

    /// So many bytes, whole pages, which take memory as they are written; `nil` when the system has none to give.
    static func map(_ length: Int) -> UnsafeMutableRawPointer? {
        let flags = MAP_PRIVATE | Int32(MAP_ANONYMOUS) | Int32(MAP_NORESERVE)
        guard let base = mmap(nil, length, PROT_READ | PROT_WRITE, flags, -1, 0), base != MAP_FAILED else { return nil }
        return base
    }

    /// Gives whole pages back: what the kernel still sends of them, it keeps.
    static func unmap(_ base: UnsafeMutableRawPointer, _ length: Int) {
        // Where the system has no room for one more hole it keeps the addresses, and takes the memory.
        if munmap(base, length) != 0 { madvise(base, length, MADV_DONTNEED) }
    }
}
