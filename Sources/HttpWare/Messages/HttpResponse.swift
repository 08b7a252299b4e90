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
    var reason: String? {
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
        var reason: String?
        var upgrade: String?
        var problem: ProblemText?
        var source: (any ContentSource)?
    }

    let values: Values

    init(_ values: Values) { self.values = values }
}

extension HttpResponse: CustomStringConvertible {
    public var description: String { "\(status) \(reason ?? status.reasonPhrase)" }
}
