/// The content of a request: none, bytes, or content that is streamed while the request is sent.
public struct RequestContent: Sendable {
    enum Storage: Sendable {
        case none
        case bytes([UInt8])
        /// Content that is opened again for each attempt; `length` is `nil` if it is unknown.
        case streamed(length: Int?, mayRepeat: Bool, open: @Sendable () throws -> any UploadSource)
    }

    let storage: Storage
    /// The file that it is; `nil` for other content.
    private(set) var path: String?
    /// The `Content-Type` of the content, unless the request's fields have one.
    public var contentType: String?

    init(_ storage: Storage, contentType: String?) {
        self.storage = storage
        self.contentType = contentType
    }

    /// No content.
    public static let none = RequestContent(.none, contentType: nil)

    /// Bytes in memory.
    public static func bytes(
        _ bytes: some Sequence<UInt8>, contentType: String? = "application/octet-stream"
    ) -> RequestContent {
        RequestContent(.bytes(Array(bytes)), contentType: contentType)
    }

    /// Text, as UTF-8.
    public static func text(_ text: String, contentType: String = "text/plain; charset=utf-8") -> RequestContent {
        .bytes(text.utf8, contentType: contentType)
    }

    /// A value, written by the encoder; JSON by default. Throws the encoder's error.
    public static func encoded(_ value: some Encodable, by encoder: any ModelEncoder = JsonCoder()) throws
        -> RequestContent
    {
        .bytes(try encoder.encode(value), contentType: encoder.contentType)
    }

    /// A form's fields. WHATWG URL §5.2.
    public static func form(_ items: QueryItems) -> RequestContent {
        .bytes(items.form.utf8, contentType: "application/x-www-form-urlencoded")
    }

    /// A form whose fields are the members of a value; see `QueryItems.init(encoding:dates:data:)`.
    public static func form(
        encoding value: some Encodable, dates: QueryItems.DateStrategy = .iso8601,
        data: QueryItems.DataStrategy = .base64
    ) throws -> RequestContent {
        .form(try QueryItems(encoding: value, dates: dates, data: data))
    }

    /// Fields and files, streamed in sequence. RFC 7578.
    public static func multipart(_ multipart: Multipart) -> RequestContent { multipart.content }

    /// A file, streamed from disk. It is opened when the request is sent, once for each attempt.
    public static func file(_ file: FileContent) -> RequestContent {
        var content = file.content
        content.path = file.path
        return content
    }

    /// Pieces that are requested one at a time, each after the previous one was sent. Such content can be sent
    /// only once, so its request is neither redirected nor repeated, and the error says so; `reopening` has no such limit. If
    /// the source supplies another length than stated, the request fails.
    public static func stream<Pieces: AsyncSequence & Sendable>(
        _ pieces: Pieces, length: Int? = nil, contentType: String? = "application/octet-stream"
    ) -> RequestContent where Pieces.Element == [UInt8] {
        RequestContent(
            .streamed(length: length, mayRepeat: false) { SequenceSource(pieces) }, contentType: contentType)
    }

    /// Pieces of a source that can be opened again: `open` is called when the request is sent, and once more for each further
    /// attempt, after a redirect, a new token, a retry, or a connection that broke. It must supply the same content each time.
    public static func reopening<Pieces: AsyncSequence & Sendable>(
        length: Int? = nil, contentType: String? = "application/octet-stream",
        _ open: @escaping @Sendable () throws -> Pieces
    ) -> RequestContent where Pieces.Element == [UInt8] {
        RequestContent(
            .streamed(length: length, mayRepeat: true) { SequenceSource(try open()) }, contentType: contentType)
    }

    /// The number of bytes, if it is known in advance.
    public var length: Int? {
        switch storage {
        case .none: 0
        case .bytes(let bytes): bytes.count
        case .streamed(let length, _, _): length
        }
    }

    /// Whether it can be sent again from the beginning.
    public var mayRepeat: Bool {
        if case .streamed(_, let mayRepeat, _) = storage { mayRepeat } else { true }
    }

    /// Whether there is no content.
    public var isEmpty: Bool {
        switch storage {
        case .none: true
        case .bytes(let bytes): bytes.isEmpty
        case .streamed: false
        }
    }
}
