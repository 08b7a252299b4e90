import CNghttp2
import Glibc

/// The memory of libnghttp2 for the sessions of one loop: freed pieces are kept for the next stream or head.
///
/// libnghttp2 allocates and frees a dozen pieces with each stream, but the C library keeps only seven of each size. Used on its
/// loop's thread only.
final class Http2Memory {
    /// Behind a pointer for libnghttp2's calls, so that no references are counted there.
    private let pieces: UnsafeMutablePointer<Http2Pieces>
    /// The memory in which sessions build their heads: one for all, so that it stays in the processor's cache.
    let lines = Http2Memory.makeLines()

    static func makeLines() -> UnsafeMutablePointer<Http2Lines> {
        let lines = UnsafeMutablePointer<Http2Lines>.allocate(capacity: 1)  // freed by `free`
        lines.initialize(to: Http2Lines())
        return lines
    }

    static func free(_ lines: UnsafeMutablePointer<Http2Lines>) {
        lines.deinitialize(count: 1)
        lines.deallocate()
    }

    init() {
        pieces = .allocate(capacity: 1)
        pieces.initialize(to: Http2Pieces())
    }

    /// All sessions are gone, because each retains the memory.
    deinit {
        pieces.pointee.freeAll()
        pieces.deinitialize(count: 1)
        pieces.deallocate()
        Http2Memory.free(lines)
    }

    /// The number of bytes kept.
    var kept: Int { pieces.pointee.kept }

    /// The functions for libnghttp2, which copies them. A session retains the memory itself.
    var functions: nghttp2_mem {
        nghttp2_mem(
            mem_user_data: pieces, malloc: http2Allocate, free: http2Free, calloc: http2AllocateZeroed,
            realloc: http2Reallocate)
    }
}

/// The kept pieces, by size. The owner calls `freeAll` at the end.
struct Http2Pieces {
    /// Each piece is preceded by its size in steps; 0 for a piece that returns directly to the C library. The prefix is as long as the
    /// alignment that the C library guarantees.
    private static let prefix = 16
    private static let step = 64
    /// The longest kept piece, in steps; longer ones are rare.
    private static let longest = 32
    /// The maximum number of bytes kept; the rest returns to the C library.
    static let mostKept = 2 << 20

    /// The first piece of each size; each piece holds the address of the next.
    private var first = InlineArray<33, UnsafeMutableRawPointer?>(repeating: nil)
    /// The number of bytes kept.
    private(set) var kept = 0

    @inline(__always)
    private static func steps(for count: Int) -> Int { max(1, (count &+ step &- 1) >> 6) }

    @inline(__always)
    private static func steps(of piece: UnsafeMutableRawPointer) -> Int { (piece - prefix).load(as: Int.self) }

    /// Allocates a piece of at least this size; `nil` if memory is exhausted.
    @inline(__always)
    mutating func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
        guard count >= 0, count <= Http2Pieces.longest * Http2Pieces.step else { return Http2Pieces.make(0, count) }
        let steps = Http2Pieces.steps(for: count)
        guard let piece = first[steps] else { return Http2Pieces.make(steps, steps * Http2Pieces.step) }
        first[steps] = piece.load(as: UnsafeMutableRawPointer?.self)
        kept &-= steps * Http2Pieces.step
        return piece
    }

    /// Allocates a zeroed piece; `nil` if memory is exhausted.
    @inline(__always)
    mutating func allocateZeroed(_ number: Int, of size: Int) -> UnsafeMutableRawPointer? {
        let (count, isTooLarge) = number.multipliedReportingOverflow(by: size)
        guard !isTooLarge, let piece = allocate(count) else { return nil }
        memset(piece, 0, count)
        return piece
    }

    @inline(never)
    private static func make(_ steps: Int, _ size: Int) -> UnsafeMutableRawPointer? {
        guard size >= 0, size < .max - prefix, let memory = Glibc.malloc(prefix + size) else { return nil }
        memory.storeBytes(of: steps, as: Int.self)
        return memory + prefix
    }

    @inline(__always)
    mutating func free(_ piece: UnsafeMutableRawPointer) {
        let steps = Http2Pieces.steps(of: piece)
        let size = steps &* Http2Pieces.step
        guard steps > 0, kept &+ size <= Http2Pieces.mostKept else { return Glibc.free(piece - Http2Pieces.prefix) }
        assert(Http2Pieces.spoil(piece, size))
        piece.storeBytes(of: first[steps], as: UnsafeMutableRawPointer?.self)
        first[steps] = piece
        kept &+= size
    }

    /// In debug builds, overwrites freed memory, so that reading it gives wrong values.
    private static func spoil(_ piece: UnsafeMutableRawPointer, _ size: Int) -> Bool {
        memset(piece, 0xdd, size)
        return true
    }

    mutating func reallocate(_ piece: UnsafeMutableRawPointer, _ count: Int) -> UnsafeMutableRawPointer? {
        let steps = Http2Pieces.steps(of: piece)
        if steps == 0 {
            guard count >= 0, count < .max - Http2Pieces.prefix else { return nil }
            return Glibc.realloc(piece - Http2Pieces.prefix, Http2Pieces.prefix + count).map { $0 + Http2Pieces.prefix }
        }
        if count >= 0, count <= steps * Http2Pieces.step { return piece }
        guard let larger = allocate(count) else { return nil }
        larger.copyMemory(from: piece, byteCount: steps * Http2Pieces.step)
        free(piece)
        return larger
    }

    mutating func freeAll() {
        for steps in first.indices {
            while let piece = first[steps] {
                first[steps] = piece.load(as: UnsafeMutableRawPointer?.self)
                Glibc.free(piece - Http2Pieces.prefix)
            }
        }
        kept = 0
    }
}

// C callbacks are outside any isolated context: inside one, they would check for it at run time and trap.

@inline(__always)
private func pieces(_ memory: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Http2Pieces> {
    memory.assumingMemoryBound(to: Http2Pieces.self)
}

private func http2Allocate(_ count: Int, _ memory: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let memory else { return nil }
    return pieces(memory).pointee.allocate(count)
}

private func http2AllocateZeroed(_ number: Int, _ size: Int, _ memory: UnsafeMutableRawPointer?)
    -> UnsafeMutableRawPointer?
{
    guard let memory else { return nil }
    return pieces(memory).pointee.allocateZeroed(number, of: size)
}

private func http2Reallocate(_ piece: UnsafeMutableRawPointer?, _ count: Int, _ memory: UnsafeMutableRawPointer?)
    -> UnsafeMutableRawPointer?
{
    guard let piece else { return http2Allocate(count, memory) }
    guard let memory else { return nil }
    return pieces(memory).pointee.reallocate(piece, count)
}

private func http2Free(_ piece: UnsafeMutableRawPointer?, _ memory: UnsafeMutableRawPointer?) {
    guard let piece, let memory else { return }
    pieces(memory).pointee.free(piece)
}
