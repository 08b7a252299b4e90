import Glibc

/// Memory for contents of known length, one after another, in 2 MiB that are contiguous in physical memory if the
/// system has such pages. A socket's queue then refers to a contiguous range once, not page by page. madvise(2), MADV_HUGEPAGE.
///
/// No part is reused, because a released part may still be in the process of being sent: each part is returned to the system.
struct PageArea {
    static let shared = ThreadLock(PageArea())

    /// 0 before the first area exists.
    private var next: UInt = 0
    private var left = 0

    private static let size = 2 << 20
    /// Longer contents get separate pages, because the rest of an area that is too short for the next content is wasted.
    private static let mostTaken = size / 4

    /// Takes whole pages for this many bytes; `nil` if the length is too large or memory is exhausted.
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
        // Twice the size is mapped; the aligned part is kept.
        guard let base = PageArea.map(2 * size) else { return }
        let before = (size - Int(bitPattern: base) % size) % size
        if before > 0 { PageArea.unmap(base, before) }
        PageArea.unmap(base + before + size, size - before)
        // If the system has no such pages, the area is used without them.
        madvise(base + before, size, MADV_HUGEPAGE)
        (next, left) = (UInt(bitPattern: base + before), size)
    }

    /// Maps whole pages of this length, which use memory as they are written; `nil` if the system has none.
    static func map(_ length: Int) -> UnsafeMutableRawPointer? {
        let flags = MAP_PRIVATE | Int32(MAP_ANONYMOUS) | Int32(MAP_NORESERVE)
        guard let base = mmap(nil, length, PROT_READ | PROT_WRITE, flags, -1, 0), base != MAP_FAILED else { return nil }
        return base
    }

    /// Returns whole pages to the system; the kernel keeps pages that it is still sending.
    static func unmap(_ base: UnsafeMutableRawPointer, _ length: Int) {
        // If munmap fails because there are too many mappings, the addresses stay reserved but the memory is released.
        if munmap(base, length) != 0 { madvise(base, length, MADV_DONTNEED) }
    }
}
