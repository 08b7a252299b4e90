import Glibc
import Testing

@testable import HttpWare

/// Pieces that are freed when a test ends.
private final class TestPieces {
    private var pieces = Http2Pieces()

    deinit { pieces.freeAll() }

    var kept: Int { pieces.kept }
    func allocate(_ count: Int) -> UnsafeMutableRawPointer? { pieces.allocate(count) }
    func allocateZeroed(_ number: Int, of size: Int) -> UnsafeMutableRawPointer? {
        pieces.allocateZeroed(number, of: size)
    }
    func free(_ piece: UnsafeMutableRawPointer) { pieces.free(piece) }
    func reallocate(_ piece: UnsafeMutableRawPointer, _ count: Int) -> UnsafeMutableRawPointer? {
        pieces.reallocate(piece, count)
    }
}

/// Where libnghttp2 has its memory from.
@Suite struct Http2MemoryTests {
    @Test func `a piece that was given back is the next of its size`() throws {
        let pieces = TestPieces()
        let piece = try #require(pieces.allocate(100))
        pieces.free(piece)
        #expect(pieces.kept == 128)
        let larger = try #require(pieces.allocate(200))
        #expect(larger != piece && pieces.kept == 128)
        let again = try #require(pieces.allocate(120))
        #expect(again == piece && pieces.kept == 0)
        pieces.free(again)
        pieces.free(larger)
    }

    @Test func `pieces in use are different ones, aligned, and as long as asked for`() throws {
        let pieces = TestPieces()
        let counts = [0, 1, 15, 63, 64, 65, 1000, 2047, 2048, 2049, 5000, 100_000]
        for _ in 0..<3 {
            var used: [UnsafeMutableRawPointer] = []
            for count in counts {
                let piece = try #require(pieces.allocate(count))
                #expect(UInt(bitPattern: piece) % 16 == 0)
                memset(piece, Int32(count % 251), count)
                used.append(piece)
            }
            for (piece, count) in zip(used, counts) {
                let bytes = UnsafeRawBufferPointer(start: piece, count: count)
                #expect(bytes.allSatisfy { Int($0) == count % 251 })
            }
            for piece in used { pieces.free(piece) }
        }
    }

    @Test func `a piece that is asked for with zeros has them, though it was used before`() throws {
        let pieces = TestPieces()
        let piece = try #require(pieces.allocate(300))
        memset(piece, 0xff, 300)
        pieces.free(piece)
        let zeroed = try #require(pieces.allocateZeroed(3, of: 100))
        #expect(zeroed == piece)
        #expect(UnsafeRawBufferPointer(start: zeroed, count: 300).allSatisfy { $0 == 0 })
        pieces.free(zeroed)
        #expect(pieces.allocateZeroed(.max, of: 2) == nil)
    }

    @Test(arguments: [10, 64, 65, 2000, 5000])
    func `a piece that grows keeps its content`(count: Int) throws {
        let pieces = TestPieces()
        var piece = try #require(pieces.allocate(count))
        for index in 0..<count { piece.storeBytes(of: UInt8(index % 251), toByteOffset: index, as: UInt8.self) }
        for larger in [count + 1, count + 64, 3000, 9000] where larger > count {
            piece = try #require(pieces.reallocate(piece, larger))
            let bytes = UnsafeRawBufferPointer(start: piece, count: count)
            #expect(bytes.enumerated().allSatisfy { $0.element == UInt8($0.offset % 251) })
        }
        pieces.free(piece)
    }

    @Test func `no more than the bound is kept`() throws {
        let pieces = TestPieces()
        let used = (0..<1500).compactMap { _ in pieces.allocate(2048) }
        #expect(used.count == 1500)
        for piece in used { pieces.free(piece) }
        #expect(pieces.kept == Http2Pieces.mostKept)
    }

    @Test func `an allocation beyond the address space fails`() {
        let pieces = TestPieces()
        #expect(pieces.allocate(.max) == nil)
        #expect(pieces.allocate(-1) == nil)
    }
}
