/// A response, as wares see it: the same for every version and transport. RFC 9110 §6.
public struct HttpResponse: Sendable {
    /// The status.
    public var status: HttpStatus
    /// The header section, without hop-by-hop fields.
    public var fields: HttpFields
    /// The content.
    public var content: HttpContent
    /// The version that the response was received with.
    public internal(set) var version: HttpVersion = .http11
    /// Whether the origin server keeps this connection open.
    @usableFromInline var isPersistent = true
    /// Whether it is a stored response: `exchange.responder` is then the cache.
    public var isStored = false
    /// Rarely used parts; `nil` if this response has none of them.
    @usableFromInline var rare: ResponseRareParts?

    @inlinable public init(_ status: HttpStatus, fields: HttpFields = HttpFields(), content: HttpContent = .none) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    /// A response whose content a source provides while it is sent. A source that does not keep to the stated length fails.
    public init(_ status: HttpStatus, fields: HttpFields = HttpFields(), source: any ContentSource, length: Int? = nil)
    {
        self.init(status, fields: fields, content: HttpContent(extent: length.map { .length(max(0, $0)) } ?? .unknown))
        self.source = source
    }

    /// Empties the response and keeps its memory.
    mutating func reset() {
        status = .ok
        fields.reset()
        content = .none
        version = .http11
        isPersistent = true
        isStored = false
        rare = nil
    }
}

// MARK: - Rarely used parts

extension HttpResponse {
    /// The reason phrase as received, if it differs from the standard one. RFC 9112 §4.
    /// Characters that cannot be in a reason phrase are ignored when it is set.
    public var receivedReason: String? {
        get { reason.map { ReceivedText.text($0) } }
        set { reason = newValue.map { $0.utf8.filter { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } } }
    }

    /// The same as bytes, which need not be UTF-8.
    public var receivedReasonBytes: [UInt8]? {
        get { reason }
        set { reason = newValue.map { $0.filter { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } } }
    }

    /// Whether the reason phrase as received is not UTF-8, so that the characters of its text stand for bytes.
    public var isReasonRaw: Bool { reason.map { String(validating: $0, as: UTF8.self) == nil } ?? false }

    /// The same as bytes, which may be of any coding.
    var reason: [UInt8]? {
        @inline(__always) get { rare?.values.reason }
        set { if rare != nil || newValue != nil { change { $0.reason = newValue } } }
    }

    /// The protocols that the origin server switches to, with 101. RFC 9110 §7.8.
    var upgrade: String? {
        @inline(__always) get { rare?.values.upgrade }
        set { if rare != nil || newValue != nil { change { $0.upgrade = newValue } } }
    }

    /// The text of a refusal by the gateway.
    var problem: ProblemText? {
        @inline(__always) get { rare?.values.problem }
        set { if rare != nil || newValue != nil { change { $0.problem = newValue } } }
    }

    /// Trailer fields to send after content that a ware provides. The content is then sent without a stated length. RFC 9110 §6.5.
    public var trailers: HttpFields? {
        get { rare?.values.trailers }
        set { if rare != nil || newValue != nil { change { $0.trailers = newValue } } }
    }

    /// Provides the content, until the driver has taken it.
    var source: (any ContentSource)? {
        @inline(__always) get { rare?.values.source }
        set { if rare != nil || newValue != nil { change { $0.source = newValue } } }
    }

    @inline(never)
    private mutating func change(_ set: (inout ResponseRareParts.Values) -> Void) {
        var values = rare?.values ?? ResponseRareParts.Values()
        set(&values)
        rare = ResponseRareParts(values)
    }
}

/// Stored behind one reference: responses are copied often, but rarely have any of these parts.
@usableFromInline final class ResponseRareParts: Sendable {
    struct Values: Sendable {
        var reason: [UInt8]?
        var upgrade: String?
        var problem: ProblemText?
        var trailers: HttpFields?
        var source: (any ContentSource)?
    }

    let values: Values

    init(_ values: Values) { self.values = values }
}

extension HttpResponse: CustomStringConvertible {
    public var description: String { "\(status) \(receivedReason ?? status.reasonPhrase)" }
}
