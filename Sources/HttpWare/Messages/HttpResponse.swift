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
    /// The reason phrase as received, when it is not the status's own. RFC 9112 §4.
    var reason: String?
    /// The protocols that the origin server switches to, with 101. RFC 9110 §7.8.
    var upgrade: String?
    /// The origin server will keep this connection open.
    var isPersistent = true
    /// It was stored, and no ware made it: `exchange.responder` is the cache.
    public var isStored = false
    /// What it says, if it is a refusal of the gateway's own.
    var problem: ProblemText?
    /// Brings the content, until the driver has taken it over.
    var source: (any ContentSource)?

    public init(_ status: HttpStatus, fields: HttpFields = HttpFields(), content: HttpContent = .none) {
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
        reason = nil
        upgrade = nil
        isPersistent = true
        source = nil
        isStored = false
        problem = nil
    }
}

extension HttpResponse: CustomStringConvertible {
    public var description: String { "\(status) \(reason ?? status.reasonPhrase)" }
}
