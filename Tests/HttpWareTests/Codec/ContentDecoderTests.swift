import Testing

@testable import HttpWare

@Suite struct ContentDecoderTests {
    private let none = UnsafeRawBufferPointer(start: nil, count: 0)

    /// Decodes content that comes in pieces, step by step. Returns the output and the size of each step.
    private func decode(
        _ coded: [UInt8], _ codings: [String], by piece: Int = .max, upTo most: Int = 1 << 16,
        growth: ContentDecoder.Growth = .usual
    ) throws -> (output: [UInt8], steps: [Int]) {
        let decoder = try #require(ContentDecoder(codings, growth: growth))
        var output: [UInt8] = []
        var steps: [Int] = []
        func step(_ input: UnsafeRawBufferPointer) throws {
            let before = output.count
            try decoder.decode(input, upTo: most) { output.append(contentsOf: $0) }
            steps.append(output.count - before)
        }
        var rest = coded[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(piece))
            rest = rest.dropFirst(part.count)
            try part.withUnsafeBytes { try step($0) }
            while decoder.isPending { try step(none) }
        }
        try decoder.finish()
        return (output, steps)
    }

    // MARK: Bounds

    @Test(arguments: Bomb.codings)
    func `a bomb is decoded in steps that never exceed their limit`(coding: String) throws {
        let count = 1 << 20
        let bomb = try Bomb.make([coding], of: "hwp_", count: count)
        #expect(bomb.count < 8 << 10)
        for most in [1, 1000, 64 << 10, 256 << 10] where most > 1 || coding == "gzip" {
            let scale = most == 1 ? 20_000 : count
            let coded = most == 1 ? try Bomb.make([coding], of: "hwp_", count: scale) : bomb
            let (output, steps) = try decode(coded, [coding], upTo: most)
            #expect(output.count == scale)
            #expect(steps.allSatisfy { $0 <= most }, "\(most)")
            #expect(steps.count >= scale / most)
        }
    }

    @Test(arguments: [
        ["gzip", "gzip"], ["br", "gzip"], ["gzip", "zstd", "deflate"], ["zstd", "br", "zstd", "gzip"],
    ])
    func `bombs inside of bombs have the same limits`(codings: [String]) throws {
        let text = String(repeating: "a line of text that is not the same as others\n", count: 40)
        let bomb = try Bomb.make(codings, of: text, count: 900_000)
        let (output, steps) = try decode(bomb, codings)
        #expect(output.count == 900_000)
        #expect(steps.allSatisfy { $0 <= 1 << 16 })
        #expect(try decode(bomb, codings, by: 1).output == output)
    }

    @Test(arguments: Bomb.codings)
    func `content is the same in pieces and whole, however small the steps`(coding: String) throws {
        let text = (0..<3000).map { "{\"id\": \($0), \"name\": \"item \($0 % 97)\"},\n" }.joined()
        let coded = try Bomb.encode(Array(text.utf8), coding)
        for (piece, most) in [(1, 1 << 16), (7, 100), (.max, 3), (1000, 1 << 16)] {
            #expect(try decode(coded, [coding], by: piece, upTo: most).output == Array(text.utf8))
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5, .max], 0x22...0x27 as ClosedRange<UInt8>)
    func `a format of zstd from before its RFC is refused, in pieces and whole`(piece: Int, version: UInt8) throws {
        let frame = [version, 0xb5, 0x2f, 0xfd, 0x58, 0xff, 0xfb, 0xff, 0x04, 0, 0, 0, 0]
        #expect(throws: ContentDecoder.Fault.self) { try decode(frame, ["zstd"], by: piece) }
        #expect(throws: ContentDecoder.Fault.self) { try decode(Bomb.encode([1], "zstd") + frame, ["zstd"], by: piece) }
    }

    @Test(arguments: [1, 2, 3, 4, 5, .max], 0x50...0x5f as ClosedRange<UInt8>)
    func `skippable frames of zstd are skipped, wherever they stand`(piece: Int, mark: UInt8) throws {
        let skipped: [UInt8] = [mark, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]
        let frame = try Bomb.encode([7, 8], "zstd")
        let content = skipped + frame + skipped + skipped + frame + frame + skipped
        #expect(try decode(content, ["zstd"], by: piece).output == [7, 8, 7, 8, 7, 8])
        #expect(throws: ContentDecoder.Fault.self) {
            try decode(frame + [mark, 0x2a, 0x4d, 0x19], ["zstd"], by: piece)
        }
    }

    @Test func `empty members are work as well, so that a call does not read them without end`() throws {
        let member = try Bomb.encode([], "gzip")
        let coded = Array(repeatElement(member, count: 1 << 20 / 20).joined())
        let (output, steps) = try decode(coded, ["gzip"])
        #expect(output.isEmpty)
        #expect(steps.count > coded.count / (512 << 10))
    }

    @Test func `input may be added while output is pending`() throws {
        let text = Array((0..<20_000).map { "\($0)," }.joined().utf8)
        let coded = try Bomb.encode(text, "gzip")
        let decoder = try #require(ContentDecoder(["gzip"]))
        var output: [UInt8] = []
        for byte in coded {
            try [byte].withUnsafeBytes { try decoder.decode($0, upTo: 2) { output.append(contentsOf: $0) } }
        }
        #expect(decoder.isPending)
        while decoder.isPending { try decoder.decode(none, upTo: 1000) { output.append(contentsOf: $0) } }
        try decoder.finish()
        #expect(output == text)
    }

    @Test func `content is not whole while some of it waits`() throws {
        let coded = try Bomb.make(["gzip"], count: 1 << 20)
        let decoder = try #require(ContentDecoder(["gzip"]))
        try coded.withUnsafeBytes { try decoder.decode($0, upTo: 10) { _ in } }
        #expect(throws: ContentDecoder.Fault.self) { try decoder.finish() }
    }

    // MARK: Growth

    @Test(arguments: [["br"], ["zstd"], ["gzip", "gzip"], ["deflate", "br"]])
    func `some bytes that decode to megabytes are refused`(codings: [String]) throws {
        let bomb = try Bomb.make(codings, count: 16 << 20)
        #expect(bomb.count < 3000)
        #expect(throws: ContentDecoder.Fault.self) { try decode(bomb, codings) }
    }

    @Test(arguments: ["gzip", "deflate"])
    func `content at 1,000 to 1 is decoded, such as JSON full of zeros`(coding: String) throws {
        let bomb = try Bomb.make([coding], of: "0", count: 20 << 20)
        #expect(bomb.count * 900 < 20 << 20)
        #expect(try decode(bomb, [coding]).output.count == 20 << 20)
    }

    @Test(arguments: ["br", "zstd"])
    func `the first MiB may come from any number of bytes`(coding: String) throws {
        let bomb = try Bomb.make([coding], count: 1 << 20)
        #expect(bomb.count < 200)
        #expect(try decode(bomb, [coding]).output.count == 1 << 20)
    }

    @Test func `a receiver that limits the length itself may lift the ratio`() throws {
        let bomb = try Bomb.make(["br"], count: 20 << 20)
        #expect(try decode(bomb, ["br"], growth: .unlimited).output.count == 20 << 20)
    }

    // MARK: Whole content

    @Test(arguments: Bomb.codings)
    func `whole content is decoded up to a limit`(coding: String) throws {
        let coded = try Bomb.make([coding], of: "abc", count: 300_000)
        for (limit, isAll) in [(300_000, true), (299_999, false), (0, false), (1 << 20, true)] {
            let decoder = try #require(ContentDecoder([coding]))
            var output: [UInt8] = []
            #expect(try decoder.decode(coded, into: &output, upTo: limit) == isAll, "\(limit)")
            #expect(output.count == min(limit, 300_000))
        }
    }
}
