import Testing

@testable import HttpWare

/// A call neither took nor made a byte, and asked for another.
struct NoProgress: Error {}

extension ContentEncoder {
    /// The output for one content, with a room of this size for each call.
    func output(
        of input: [UInt8], room size: Int, _ step: ContentEncodingStep = .finish
    ) throws -> [UInt8] {
        var output: [UInt8] = []
        var room = [UInt8](repeating: 0, count: size)
        var start = 0
        var hasMore = true
        while hasMore {
            let progress = try input.withUnsafeBytes { input in
                try room.withUnsafeMutableBytes {
                    try run(UnsafeRawBufferPointer(rebasing: input[start...]), step, into: $0)
                }
            }
            hasMore = progress.hasMore
            guard !hasMore || progress.consumed + progress.produced > 0 else { throw NoProgress() }
            output += room[..<progress.produced]
            start += progress.consumed
        }
        guard start == input.count else { throw NoProgress() }
        return output
    }
}

extension CodingReader {
    /// The output for input that comes in pieces of this size, with a room of this size for each call.
    func output(of input: [UInt8], by piece: Int = .max, room size: Int = 4096) throws -> [UInt8] {
        var output: [UInt8] = []
        var room = [UInt8](repeating: 0, count: size)
        var rest = input[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(piece))
            rest = rest.dropFirst(part.count)
            var start = 0
            var isFull = false
            while start < part.count || isFull {
                let (consumed, produced) = try part.withUnsafeBytes { part in
                    try room.withUnsafeMutableBytes {
                        try read(UnsafeRawBufferPointer(rebasing: part[start...]), into: $0)
                    }
                }
                guard consumed + produced > 0 || isFull && start == part.count else { throw NoProgress() }
                isFull = produced == size
                output += room[..<produced]
                start += consumed
            }
        }
        return output
    }
}

/// The laws of all encoders.
enum CodingLaws {
    /// Content of many lines, which codings make smaller.
    static let text = Array((0..<30_000).map { "line \($0 * $0)\n" }.joined().utf8)

    /// Content comes out as it went in, with a room of any size.
    static func expectSameContent(
        _ encoder: () -> (some ContentEncoder)?, _ reader: () -> (some CodingReader)?
    ) throws {
        for size in [1, 7, 1 << 20] {
            let output = try #require(encoder()).output(of: text, room: size)
            #expect(output.count < text.count / 2)
            let reader = try #require(reader())
            #expect(try reader.output(of: output) == text)
            #expect(reader.isWhole)
        }
    }

    /// Flushed pieces can be read at once, and the end closes the content.
    static func expectFlushes(
        _ pieces: [String], room: Int, _ encoder: (some ContentEncoder)?, _ reader: (some CodingReader)?
    ) throws {
        let encoder = try #require(encoder)
        let reader = try #require(reader)
        for piece in pieces.map({ Array($0.utf8) }) {
            #expect(try reader.output(of: encoder.output(of: piece, room: room, .flush)) == piece)
            #expect(!reader.isWhole)
        }
        #expect(try reader.output(of: encoder.output(of: [], room: room)) == [])
        #expect(reader.isWhole)
    }

    /// After a reset nothing of the former content is left.
    static func expectReset(_ encoder: () -> (some ContentEncoder)?) throws {
        let used = try #require(encoder())
        _ = try used.output(of: text, room: 4096, .more)
        #expect(used.reset())
        let output = try used.output(of: [1, 2, 3], room: 4096)
        #expect(try output == #require(encoder()).output(of: [1, 2, 3], room: 4096))
    }
}
