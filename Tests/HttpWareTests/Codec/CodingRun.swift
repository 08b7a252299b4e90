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
