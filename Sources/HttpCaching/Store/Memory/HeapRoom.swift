import Glibc

/// Memory that a thread's heap takes from the system before the next responses are stored.
///
/// The heap of a thread other than the main one grows page by page in glibc, with one mprotect(2) each, and each page faults when
/// it is first written. Together this took a third of the time to store a short response. If a block is allocated and freed, its
/// pages stay with the heap.
enum HeapRoom {
    /// The size of the block: smaller than what malloc(3) maps separately, and than what a heap returns to the system.
    static let size = 112 << 10

    private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))

    /// Makes room in the heap of the calling thread, unless it has room.
    static func take() {
        guard let block = malloc(size) else { return }
        defer { free(block) }
        // Touches the whole pages within the block. A system without support (Linux before 5.14) maps them one by one later.
        let first = (UInt(bitPattern: block) + UInt(page) - 1) & ~(UInt(page) - 1)
        let end = (UInt(bitPattern: block) + UInt(size)) & ~(UInt(page) - 1)
        if let start = UnsafeMutableRawPointer(bitPattern: first), end > first {
            madvise(start, Int(end - first), populateForWriting)
        }
    }

    /// `MADV_POPULATE_WRITE`, which some systems' headers lack.
    private static let populateForWriting: Int32 = 23
}
