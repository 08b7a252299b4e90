/// A response, as wares see it: the same whatever version or transport carried it. RFC 9110 §6.
public struct HttpResponse: Sendable {
    /// What became of the request.
    public var status: HttpStatus
    /// The header section, without fields for one hop.
    public var fields: HttpFields
    /// What follows the head.
    public var content: HttpContent
    /// The version that the response was received with.
    public internal(set) var version: HttpVersion = .http11
    /// The origin server will keep this connection open.
    @usableFromInline var isPersistent = true
    /// It was stored, and no ware made it: `exchange.responder` is the cache.
    public var isStored = false
    /// What few responses have; `nil` where this one has nothing of it.
    @usableFromInline var rare: ResponseRareParts?

    @inlinable public init(_ status: HttpStatus, fields: HttpFields = HttpFields(), content: HttpContent = .none) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    /// A response whose content is brought while it is sent. A source that is to bring another length than it said fails.
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

// MARK: - What few responses have

extension HttpResponse {
    /// The reason phrase as received, when it is not the status's own. RFC 9112 §4.
    var reason: String? {
        @inline(__always) get { rare?.values.reason }
        set { if rare != nil || newValue != nil { change { $0.reason = newValue } } }
    }

    /// The protocols that the origin server switches to, with 101. RFC 9110 §7.8.
    var upgrade: String? {
        @inline(__always) get { rare?.values.upgrade }
        set { if rare != nil || newValue != nil { change { $0.upgrade = newValue } } }
    }

    /// What it says, if it is a refusal of the gateway's own.
    var problem: ProblemText? {
        @inline(__always) get { rare?.values.problem }
        set { if rare != nil || newValue != nil { change { $0.problem = newValue } } }
    }

    /// Brings the content, until the driver has taken it over.
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

/// Behind one reference: a response is copied more often than it has any of these.
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
