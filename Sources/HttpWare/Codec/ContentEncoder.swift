/// Applies a content coding, to one content after the other. What it keeps of a content is bounded by its level.
public protocol ContentEncoder: AnyObject {
    var coding: ContentCoding { get }

    /// Codes some of the input into the room, as far as either goes. `hasMore` tells to go on with what is left of the input.
    func run(
        _ input: UnsafeRawBufferPointer, _ step: ContentEncodingStep, into room: UnsafeMutableRawBufferPointer
    ) throws(ContentEncodingFailure) -> ContentEncodingProgress

    /// Forgets the content so far, whole or not. False where it has to be made anew instead.
    func reset() -> Bool
}

/// What a piece of content is to its coding.
public enum ContentEncodingStep: Sendable {
    /// More follows.
    case more
    /// More follows, and what came so far has to be readable on the other side.
    case flush
    /// It was the last one.
    case finish
}

/// What an encoder has done.
public struct ContentEncodingProgress {
    /// Bytes that it took, and bytes that it made.
    var consumed: Int
    var produced: Int
    var hasMore: Bool
}

/// An encoder cannot go on.
public struct ContentEncodingFailure: Error, CustomStringConvertible {
    public let description: String
}

extension ContentCoding {
    /// An encoder of that level, from 1, the fastest, to 9; `nil` without memory.
    public func makeEncoder(level: Int) -> (any ContentEncoder)? {
        switch self {
        case .gzip: GzipEncoder(level: level)
        case .br: BrotliEncoder(level: level)
        case .zstd: ZstdEncoder(level: level)
        }
    }
}

extension ContentEncoder {
    /// Codes a piece of content, and appends what comes of it.
    public func encode(
        _ input: UnsafeRawBufferPointer, _ step: ContentEncodingStep, into output: inout [UInt8]
    ) throws(ContentEncodingFailure) {
        var rest = input[...]
        // Most contents become less than half as long.
        let room = max(leastRoom, min(input.count / 2, mostRoom))
        var hasMore = true
        while hasMore {
            try output.append(addingCapacity: room) { (free: inout OutputSpan<UInt8>) throws(ContentEncodingFailure) in
                let progress = try free.withUnsafeMutableBufferPointer {
                    (memory, count) throws(ContentEncodingFailure) in
                    let progress = try run(
                        UnsafeRawBufferPointer(rebasing: rest), step, into: UnsafeMutableRawBufferPointer(memory))
                    count = progress.produced
                    return progress
                }
                rest = rest.dropFirst(progress.consumed)
                hasMore = progress.hasMore
                if hasMore, progress.consumed + progress.produced == 0 {
                    throw ContentEncodingFailure(description: "\(coding.rawValue) makes no progress")
                }
            }
        }
    }
}

/// How much an encoder may make at once.
private let leastRoom = 16 << 10
private let mostRoom = 64 << 10
