public import HttpWare

/// The content of a message after its codings were removed, in pieces, as far as it can be decoded. For readers that take their time:
/// a small content may become a large one, which is then never held as a whole.
///
/// Unchecked: it is used by one reader at a time, which asks for the next piece after the previous one.
public final class DecodedPieces: ContentSource, @unchecked Sendable {
    /// The largest piece, in bytes: some milliseconds of work.
    public static let step = 128 << 10

    private let decoder: ContentDecoder
    /// The coded content, until it is given to the decoder.
    private var input: [UInt8]
    private var isBegun = false
    private var isOver = false
    private var left = DecodedContent.longest

    /// `nil` if the content has no coding, or one that is unknown: such content is as long as it was captured.
    public init?(_ message: CapturedMessage) {
        guard !message.content.isDecoded, let decoder = ContentDecoder(message.values(of: "content-encoding")),
            !decoder.isIdentity
        else { return nil }
        self.decoder = decoder
        input = message.content.kept
    }

    /// The next piece; `nil` after the last one, at `DecodedContent.longest`, or where the content cannot be decoded further.
    public func next() -> [UInt8]? {
        var piece: [UInt8] = []
        while piece.isEmpty {
            guard !isOver, left > 0, !isBegun || decoder.isPending else { return nil }
            isBegun = true
            do {
                try input.withUnsafeBytes { bytes in
                    try decoder.decode(bytes, upTo: min(DecodedPieces.step, left)) { piece += $0 }
                }
            } catch {
                isOver = true
            }
            input = []
            if piece.count > left { piece.removeLast(piece.count - left) }
            left -= piece.count
        }
        return piece
    }

    /// Reads all pieces without keeping them: their total length, and whether they are text.
    public func measured() -> (length: Int, isText: Bool) {
        var length = 0
        var text = TextCheck()
        while let piece = next() {
            length += piece.count
            text.take(piece)
        }
        return (length, text.isWhole)
    }

    // MARK: As the content of a response

    public func next(_ feed: ContentFeed) {
        if let piece = next() { feed.supply(piece) } else { feed.finish() }
    }

    public func cancelled() {
        isOver = true
        input = []
    }
}

/// Decides whether bytes that come in pieces are text: UTF-8 without NUL.
struct TextCheck {
    /// The beginning of a character at the end of the last piece.
    private var open: [UInt8] = []
    private var isText = true

    /// Whether all pieces together are text.
    var isWhole: Bool { isText && open.isEmpty }

    mutating func take(_ piece: [UInt8]) {
        guard isText else { return }
        var bytes = open + piece
        var count = 0
        while count < min(3, bytes.count), bytes[bytes.count - 1 - count] & 0xc0 == 0x80 { count += 1 }
        open = []
        if count < bytes.count, case let lead = bytes[bytes.count - 1 - count], lead >= 0xc0,
            count + 1 < (lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2)
        {
            open = Array(bytes.suffix(count + 1))
            bytes.removeLast(count + 1)
        }
        isText = !piece.contains(0) && String(validating: bytes, as: UTF8.self) != nil
    }
}
