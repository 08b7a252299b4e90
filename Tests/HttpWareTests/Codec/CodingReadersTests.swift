import Testing

@testable import HttpWare

/// The readers of single codings: gzip (RFC 1952), deflate (RFC 1950 and RFC 1951), brotli (RFC 7932) and zstd (RFC 8878).
@Suite struct CodingReadersTests {
    private static let text = Array((0..<400).map { "line \($0 * $0)\n" }.joined().utf8)

    private func reader(_ coding: String) throws -> any CodingReader {
        switch coding {
        case "gzip": try #require(InflateReader(.gzip))
        case "deflate": try #require(InflateReader(.deflate))
        case "br": try #require(BrotliReader())
        default: try #require(ZstdReader())
        }
    }

    @Test(arguments: Bomb.codings)
    func `content is the same whatever the sizes of the pieces and of the room`(coding: String) throws {
        let coded = try Bomb.encode(Self.text, coding)
        for (piece, size) in [(Int.max, 1 << 16), (.max, 1), (1, 1), (1, 1 << 16), (7, 3), (100, 100)] {
            let reader = try reader(coding)
            #expect(try reader.output(of: coded, by: piece, room: size) == Self.text)
            #expect(reader.isWhole)
        }
    }

    @Test(arguments: Bomb.codings)
    func `content that is cut off at any place is not whole`(coding: String) throws {
        let coded = try Bomb.encode(Array(Self.text.prefix(200)), coding)
        for count in 1..<coded.count {
            let reader = try reader(coding)
            _ = try reader.output(of: Array(coded.prefix(count)))
            #expect(!reader.isWhole, "\(count) of \(coded.count)")
        }
    }

    @Test(arguments: Bomb.codings)
    func `no input is whole, and remains so`(coding: String) throws {
        let reader = try reader(coding)
        var room: [UInt8] = [0]
        let (consumed, produced) = try room.withUnsafeMutableBytes {
            try reader.read(UnsafeRawBufferPointer(start: nil, count: 0), into: $0)
        }
        #expect(consumed == 0 && produced == 0 && reader.isWhole)
    }

    @Test(arguments: Bomb.codings, [1, Int.max])
    func `bytes behind the content are refused, unless they are one more member or frame`(coding: String, piece: Int)
        throws
    {
        let coded = try Bomb.encode([1, 2], coding)
        for rest: [UInt8] in [[0], [0xff], Array("GET".utf8)] {
            let reader = try reader(coding)
            // One byte may begin a member of gzip, which is then not whole.
            let output = try? reader.output(of: coded + rest, by: piece)
            #expect(output == nil || coding == "gzip" && rest.count == 1 && !reader.isWhole)
        }
        let reader = try reader(coding)
        if coding == "gzip" || coding == "zstd" {
            #expect(try reader.output(of: coded + coded + coded, by: piece) == [1, 2, 1, 2, 1, 2])
            #expect(reader.isWhole)
        } else {
            #expect(throws: ContentDecoder.Fault.self) { try reader.output(of: coded + coded, by: piece) }
        }
    }

    @Test(arguments: [1, 3, Int.max])
    func `deflate may be raw, as some servers send it`(piece: Int) throws {
        let raw = Array(try Bomb.encode(Self.text, "deflate").dropFirst(2).dropLast(4))
        let reader = try reader("deflate")
        #expect(try reader.output(of: raw, by: piece) == Self.text)
        #expect(reader.isWhole)
        #expect(throws: ContentDecoder.Fault.self) { try reader.output(of: [0]) }
    }

    @Test(arguments: ["gzip", "deflate"])
    func `a changed byte is noticed by the checksum, or changes nothing`(coding: String) throws {
        let text = Array(Self.text.prefix(300))
        let coded = try Bomb.encode(text, coding)
        for place in coded.indices {
            for change: UInt8 in [0x01, 0x10, 0x80, 0xff] {
                var bytes = coded
                bytes[place] ^= change
                let reader = try reader(coding)
                guard let output = try? reader.output(of: bytes), reader.isWhole else { continue }
                // A changed first byte may turn zlib's format into raw Deflate, which has no checksum.
                #expect(output == text || coding == "deflate" && place < 2, "\(place)")
            }
        }
    }

    @Test(arguments: Bomb.codings, 1...4 as ClosedRange<UInt64>)
    func `random bytes are refused, or end somewhere`(coding: String, seed: UInt64) throws {
        var random = Seeded(seed)
        let coded = try Bomb.encode(Self.text, coding)
        for _ in 0..<50 {
            var bytes =
                Bool.random(using: &random)
                ? coded : (0..<200).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
            for _ in 0..<3 {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0 ... .max, using: &random)
            }
            for piece in [1, Int.max] {
                do { _ = try reader(coding).output(of: bytes, by: piece, room: 64) } catch is ContentDecoder.Fault {}
            }
        }
    }

    @Test func `a window of more than 8 MiB is refused, RFC 9659 §3`() throws {
        // A frame's mark, no single segment, a window of 2^(10 + exponent), and an empty last block.
        func frame(_ exponent: UInt8) -> [UInt8] { [0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 1, 0, 0] }
        #expect(try reader("zstd").output(of: frame(13)).isEmpty)
        #expect(throws: ContentDecoder.Fault.self) { try reader("zstd").output(of: frame(14)) }
    }
}
