/// Applies a content coding, to one content after another. Its memory is bounded by its level.
public protocol ContentEncoder: AnyObject {
    var coding: ContentCoding { get }

    /// Encodes the input into the room, until one of them is used up. `hasMore` means: call again with the rest of the input.
    func run(
        _ input: UnsafeRawBufferPointer, _ step: ContentEncodingStep, into room: UnsafeMutableRawBufferPointer
    ) throws(ContentEncodingFailure) -> ContentEncodingProgress

    /// Discards the current content, complete or not. Returns false if a new encoder has to be made instead.
    func reset() -> Bool
}

/// The position of a piece in its content.
public enum ContentEncodingStep: Sendable {
    /// More follows.
    case more
    /// More follows, and the receiver must be able to decode everything so far.
    case flush
    /// It is the last piece.
    case finish
}

/// The progress of an encoder.
public struct ContentEncodingProgress {
    /// The numbers of bytes that it consumed and produced.
    var consumed: Int
    var produced: Int
    var hasMore: Bool
}

/// The encoder failed.
public struct ContentEncodingFailure: Error, CustomStringConvertible {
    public let description: String
}

extension ContentCoding {
    /// Makes an encoder of this level, from 1, the fastest, to 9; `nil` if memory is exhausted.
    public func makeEncoder(level: Int) -> (any ContentEncoder)? {
        switch self {
        case .gzip: GzipEncoder(level: level)
        case .br: BrotliEncoder(level: level)
        case .zstd: ZstdEncoder(level: level)
        }
    }
}

extension ContentEncoder {
    /// Encodes a piece of content, and appends the result.
    public func encode(
        _ input: UnsafeRawBufferPointer, _ step: ContentEncodingStep, into output: inout [UInt8]
    ) throws(ContentEncodingFailure) {
        var rest = input[...]
        // Most contents shrink to less than half.
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

/// The bounds of an encoder's output per step, in bytes.
private let leastRoom = 16 << 10
private let mostRoom = 64 << 10
