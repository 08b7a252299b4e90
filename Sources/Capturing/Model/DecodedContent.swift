import HttpWare

/// Content after its codings were removed, as far as it was captured.
public struct DecodedContent: Sendable, Equatable {
    /// The most bytes that are decoded.
    public static let longest = 64 << 20

    /// The decoded bytes, or the captured bytes if decoding failed.
    public var bytes: [UInt8]
    /// Whether all of the content is present and decoded.
    public var isWhole: Bool
    /// Whether the bytes are still coded, because they could not be decoded.
    public var isCoded = false
    /// Why the content could not be decoded, for people.
    public var fault: String?

    /// Decodes the content of a message by its `Content-Encoding` (RFC 9110 §8.4), up to `limit` bytes.
    public init(_ message: CapturedMessage, limit: Int = longest) {
        let content = message.content
        let isCoded = !content.isDecoded && message.fields.withFirstValue(of: "content-encoding") { _ in true } ?? false
        let decoder = isCoded ? ContentDecoder(message.values(of: "content-encoding")) : nil
        if isCoded, decoder == nil {
            self.init(bytes: Array(content.kept.prefix(limit)), isWhole: false, fault: "the content coding is unknown")
            self.isCoded = true
            return
        }
        guard let decoder, !decoder.isIdentity else {
            self.init(bytes: content.kept, isWhole: content.isWhole)
            if bytes.count > limit {
                bytes.removeLast(bytes.count - limit)
                isWhole = false
            }
            return
        }
        var bytes: [UInt8] = []
        var fault: String?
        do {
            guard try decoder.decode(content.kept, into: &bytes, upTo: limit) else {
                self.init(bytes: bytes, isWhole: false)
                return
            }
            if content.isWhole { try decoder.finish() }
        } catch {
            fault = "\(error)"
        }
        let isUnread = fault != nil && bytes.isEmpty
        if isUnread { bytes = Array(content.kept.prefix(limit)) }
        self.init(bytes: bytes, isWhole: fault == nil && content.isWhole, fault: fault)
        self.isCoded = isUnread
    }

    private init(bytes: [UInt8], isWhole: Bool, fault: String? = nil) {
        self.bytes = bytes
        self.isWhole = isWhole
        self.fault = fault
    }
}
