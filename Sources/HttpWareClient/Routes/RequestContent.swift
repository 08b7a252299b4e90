/// What a request carries: nothing, bytes, or content that is streamed while it is sent.
public struct RequestContent: Sendable {
    enum Storage: Sendable {
        case none
        case bytes([UInt8])
        /// Content that is opened anew for each attempt; `nil` for a length that is not known.
        case streamed(length: Int?, mayRepeat: Bool, open: @Sendable () throws -> any UploadSource)
    }

    let storage: Storage
    /// The `Content-Type` that goes with it, unless the request's fields have one.
    public var contentType: String?

    init(_ storage: Storage, contentType: String?) {
        self.storage = storage
        self.contentType = contentType
    }

    /// No content.
    public static let none = RequestContent(.none, contentType: nil)

    /// Bytes that are at hand.
    public static func bytes(
        _ bytes: some Sequence<UInt8>, contentType: String? = "application/octet-stream"
    ) -> RequestContent {
        RequestContent(.bytes(Array(bytes)), contentType: contentType)
    }

    /// Text, as UTF-8.
    public static func text(_ text: String, contentType: String = "text/plain; charset=utf-8") -> RequestContent {
        .bytes(text.utf8, contentType: contentType)
    }

    /// A value, as the encoder writes it; JSON without further ado. Throws what the value's encoding throws.
    public static func encoded(_ value: some Encodable, by encoder: any ModelEncoder = JsonCoder()) throws
        -> RequestContent
    {
        .bytes(try encoder.encode(value), contentType: encoder.contentType)
    }

    /// A form's fields. WHATWG URL §5.2.
    public static func form(_ items: QueryItems) -> RequestContent {
        .bytes(items.form.utf8, contentType: "application/x-www-form-urlencoded")
    }

    /// A form whose fields are the members of a value; see `QueryItems.init(encoding:)`.
    public static func form(encoding value: some Encodable) throws -> RequestContent {
        .form(try QueryItems(encoding: value))
    }

    /// Fields and files, streamed one after the other. RFC 7578.
    public static func multipart(_ multipart: Multipart) -> RequestContent { multipart.content }

    /// A file, streamed from disk; it is opened when the request is sent, once for each attempt.
    public static func file(_ file: FileContent) -> RequestContent { file.content }

    /// Pieces that come one after the other, each when the one before it has gone. Such content can be sent once: a request
    /// that carries it is neither redirected nor repeated.
    ///
    /// A source that brings another length than it said fails the request.
    public static func stream<Pieces: AsyncSequence & Sendable>(
        _ pieces: Pieces, length: Int? = nil, contentType: String? = "application/octet-stream"
    ) -> RequestContent where Pieces.Element == [UInt8] {
        RequestContent(
            .streamed(length: length, mayRepeat: false) { SequenceSource(pieces) }, contentType: contentType)
    }

    /// The number of bytes, where it is known before they are sent.
    public var length: Int? {
        switch storage {
        case .none: 0
        case .bytes(let bytes): bytes.count
        case .streamed(let length, _, _): length
        }
    }

    /// Whether it can be sent again, from its beginning.
    public var mayRepeat: Bool {
        if case .streamed(_, let mayRepeat, _) = storage { mayRepeat } else { true }
    }

    /// Whether there is none.
    public var isEmpty: Bool {
        switch storage {
        case .none: true
        case .bytes(let bytes): bytes.isEmpty
        case .streamed: false
        }
    }
}
