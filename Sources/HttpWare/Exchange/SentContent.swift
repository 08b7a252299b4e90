/// The start of a request's content as it went upstream, behind all filters: kept until a response begins, because an origin server
/// that speaks HTTP/2 may state that it did not process the request. RFC 9113 §8.7.
struct SentContent {
    /// The maximum that is kept, in bytes. Content beyond it is not kept at all.
    static let most = 64 << 10

    private(set) var bytes: [UInt8] = []
    /// Whether the content has ended, and the filters with it.
    private(set) var isEnded = false
    /// Whether it is kept: only on a connection of HTTP/2, and only up to `most`.
    private(set) var isKept = false

    /// The request goes out for the first time.
    mutating func begin() { isKept = true }

    /// A piece goes upstream.
    mutating func append(_ piece: UnsafeRawBufferPointer) {
        guard isKept else { return }
        guard piece.count <= SentContent.most - bytes.count else { return forget() }
        bytes.append(contentsOf: piece)
    }

    /// The last piece went upstream.
    mutating func end() { if isKept { isEnded = true } }

    /// Removes and returns what was sent, because all of it is sent again.
    mutating func takeAgain() -> (bytes: [UInt8], isEnded: Bool) {
        defer { (bytes, isEnded) = ([], false) }
        return (bytes, isEnded)
    }

    /// The content is not needed any more, or too long.
    mutating func forget() { self = SentContent() }
}
