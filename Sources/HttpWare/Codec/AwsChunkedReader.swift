/// Removes the framing `aws-chunked`: chunks with sizes and signatures inside the content, and trailer fields behind them.
///
/// It is listed in `Content-Encoding`, although it changes no byte of the content. AWS describes it under *Signature calculations:
/// transferring payload in multiple chunks*. Memory is bounded by the limit of the trailer fields.
final class AwsChunkedReader: CodingReader {
    static let name = "aws-chunked"

    private enum State {
        /// The size of a chunk, and the number of its digits so far.
        case size(Int, digits: Int)
        /// The extension behind the size; the number of its bytes so far.
        case signature(Int, next: Int)
        case lineFeed(next: Int)
        case data(left: Int)
        case dataReturn, dataLineFeed
        case trailers
    }

    private var state = State.size(0, digits: 0)
    /// The trailer fields as they were received, with their line ends.
    private(set) var trailers: [UInt8] = []

    private static let signature = Array(";chunk-signature=".utf8)
    private static let longestSignature = 160
    private static let mostDigits = ChunkedDecoder.mostSizeDigits
    private static let mostTrailers = 16 << 10

    /// Whether the last chunk has been read.
    var isWhole: Bool { if case .trailers = state { true } else { false } }

    func read(_ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) throws -> (
        consumed: Int, produced: Int
    ) {
        var at = 0
        var produced = 0
        while at < input.count {
            if case .data(let left) = state {
                let count = min(left, input.count - at, room.count - produced)
                guard count > 0 else { break }
                UnsafeMutableRawBufferPointer(rebasing: room[produced...]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: input[at..<at + count]))
                at += count
                produced += count
                state = count == left ? .dataReturn : .data(left: left - count)
                continue
            }
            try take(input[at])
            at += 1
        }
        return (at, produced)
    }

    /// Takes a byte of the framing.
    private func take(_ byte: UInt8) throws {
        switch state {
        case .size(let size, let digits):
            if let digit = Hex.value(byte) {
                guard digits < AwsChunkedReader.mostDigits, size >> 59 == 0 else { throw malformed }
                state = .size(size << 4 | Int(digit), digits: digits + 1)
            } else {
                guard digits > 0 else { throw malformed }
                if byte == 0x0d {
                    state = .lineFeed(next: size)
                } else {
                    state = .signature(0, next: size)
                    try take(byte)
                }
            }
        case .signature(let count, let next):
            let name = AwsChunkedReader.signature
            if count < name.count {
                guard byte == name[count] else { throw malformed }
            } else if byte == 0x0d {
                state = .lineFeed(next: next)
                return
            } else {
                // SigV4 has 64 digits, SigV4a up to 144, padded with asterisks.
                guard Hex.value(byte) != nil || byte == 0x2a, count < AwsChunkedReader.longestSignature else {
                    throw malformed
                }
            }
            state = .signature(count + 1, next: next)
        case .lineFeed(let next):
            guard byte == 0x0a else { throw malformed }
            state = next == 0 ? .trailers : .data(left: next)
        case .dataReturn:
            guard byte == 0x0d else { throw malformed }
            state = .dataLineFeed
        case .dataLineFeed:
            guard byte == 0x0a else { throw malformed }
            state = .size(0, digits: 0)
        case .trailers:
            guard trailers.count < AwsChunkedReader.mostTrailers,
                (0x20..<0x7f).contains(byte) || (0x09...0x0d).contains(byte)
            else { throw malformed }
            trailers.append(byte)
        case .data: break
        }
    }

    private var malformed: ContentDecoder.Fault {
        ContentDecoder.Fault(description: "the content is not in the chunks that aws-chunked says")
    }
}
