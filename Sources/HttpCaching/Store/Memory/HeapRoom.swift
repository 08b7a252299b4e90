import Glibc

/// Memory that a thread's heap takes from the system before the next responses are stored.
///
/// A heap of glibc that is not the main thread's grows by a page at a time, mprotect(2) each, and each page is a fault when it is first
/// written: together a third of what it takes to store a short response. A block that is taken and given back leaves its pages with the heap.
enum HeapRoom {
    /// How much is taken: less than what malloc(3) maps apart, and than what a heap gives back to the system.
    static let size = 112 << 10

    private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))

    /// Makes room in the heap of the calling thread, unless there is some.
    static func take() {
        guard let block = malloc(size) else { return }
        defer { free(block) }
        // Whole pages within the block. A system that cannot do it (Linux before 5.14) does it page by page later.
        let first = (UInt(bitPattern: block) + UInt(page) - 1) & ~(UInt(page) - 1)
        let end = (UInt(bitPattern: block) + UInt(size)) & ~(UInt(page) - 1)
        if let start = UnsafeMutableRawPointer(bitPattern: first), end > first {
            madvise(start, Int(end - first), populateForWriting)
        }
    }

    /// `MADV_POPULATE_WRITE`, which not every system's headers have.
    private static let populateForWriting: Int32 = 23
}
