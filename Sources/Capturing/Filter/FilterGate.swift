public import HttpWare

/// A filter that decides, while an exchange runs, whether an entry of a chain acts on it.
///
/// It sees the same as a capture: the request as the client sent it, the current response, secrets masked. Only the parts that
/// the filter needs are copied.
public struct FilterGate: EntryGate {
    public let filter: CaptureFilter
    public let needsRequestContent: Bool
    private let parts: FilterParts
    private let redaction: CaptureRedaction

    /// The phases at which requests and responses are judged.
    public static let requestPhase = CapturePhase.requestContent
    public static let responsePhase = CapturePhase.responseHead

    /// A gate for requests or for responses. Throws if the filter needs a later phase.
    public init(_ filter: CaptureFilter, isPostware: Bool) throws(FilterFault) {
        try filter.check(at: isPostware ? FilterGate.responsePhase : FilterGate.requestPhase)
        self.filter = filter
        parts = FilterParts(of: filter.root)
        needsRequestContent = parts.contains(.requestContent)
        redaction = CaptureRedaction(CaptureSettings())
    }

    public func admits(_ request: HttpRequest, in exchange: Exchange) -> Bool {
        filter.outcome(view(request, exchange), at: FilterGate.requestPhase) == .matches
    }

    public func admits(_ response: HttpResponse, in exchange: Exchange) -> Bool {
        guard let request = exchange.request else { return false }
        var view = view(request, exchange)
        view.status = response.status.code
        view.response = CapturedMessage(
            fields: parts.contains(.responseFields) ? redaction.shown(response.fields) : [])
        view.server = exchange.upstreamAddress
        if response.status == .switchingProtocols, view.kind == .http { view.kind = .websocket }
        switch response.fields[.contentType]?.prefix(while: { $0 != ";" }).lowercased() {
        case "text/event-stream": view.kind = .sse
        case let type? where type.hasPrefix("application/grpc"): view.kind = .grpc
        default: break
        }
        return filter.outcome(view, at: FilterGate.responsePhase) == .matches
    }

    private func view(_ request: HttpRequest, _ exchange: Exchange) -> CapturedExchange {
        var message = CapturedMessage()
        if parts.contains(.requestFields) {
            message.fields = CaptureRedaction(CaptureSettings(), exchange).shown(request.fields.received)
        }
        var view = CapturedExchange(
            id: exchange.captureNumber ?? 0, started: WallTime(seconds: 0), method: request.receivedMethod.name,
            url: parts.contains(.url) ? redaction.url(String(decoding: request.receivedUri, as: UTF8.self)) : "",
            version: request.version.name, listener: exchange.listener, request: message)
        view.peer = exchange.peer
        view.route = exchange.route
        view.service = exchange.service
        if request.upgrade?.lowercased() == "websocket" { view.kind = .websocket }
        if request.fields[.contentType]?.lowercased().hasPrefix("application/grpc") == true { view.kind = .grpc }
        if needsRequestContent {
            let (bytes, isWhole) = exchange.beginningOfContent
            view.request.content.kept = bytes
            view.request.content.size = isWhole ? bytes.count : bytes.count + 1
            if parts.contains(.operations) {
                view.operations = GraphQLOperations.names(
                    method: view.method, url: view.url, mediaType: request.fields[.contentType],
                    content: DecodedContent(view.request, limit: 1 << 20).bytes)
            }
        }
        return view
    }
}

/// The parts of an exchange that a filter reads.
struct FilterParts: OptionSet {
    let rawValue: Int

    static let url = FilterParts(rawValue: 1)
    static let requestFields = FilterParts(rawValue: 2)
    static let responseFields = FilterParts(rawValue: 4)
    static let requestContent = FilterParts(rawValue: 8)
    static let operations = FilterParts(rawValue: 16)
}

extension FilterParts {
    init(of node: FilterNode) {
        switch node {
        case .all(let nodes), .any(let nodes): self = nodes.reduce([]) { $0.union(FilterParts(of: $1)) }
        case .not(let node): self.init(of: node)
        case .test(let test, _):
            switch test {
            case .url, .domain: self = .url
            case .fields(let side, _), .contentType(let side, _):
                self =
                    side == .request
                    ? .requestFields : side == .response ? .responseFields : [.requestFields, .responseFields]
            case .isAsset: self = .responseFields
            // The fields name the coding of the content.
            case .content: self = [.requestContent, .requestFields]
            case .operation: self = [.url, .requestContent, .requestFields, .operations]
            default: self = []
            }
        }
    }
}
