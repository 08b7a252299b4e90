/// An `if` as it is decided: when an entry of a chain runs. Keys are ANDed, members of a list ORed.
public struct Condition: Sendable {
    /// As it was written.
    public let options: ConditionOptions
    /// Whether it, or a member of its `not` or `any`, asks something of the response.
    let asksResponse: Bool

    public init(_ options: ConditionOptions) {
        self.options = options
        asksResponse = options.request.asksResponse
    }

    /// Whether the request is one that the condition means, whatever the response is. A condition on a part that a partial request lacks is
    /// not met.
    public func matches(_ request: HttpRequest, in exchange: Exchange) throws(Pattern.LimitReached) -> Bool {
        try options.request.truth(of: request, from: exchange) ?? true
    }

    /// Whether the response is one that the condition means; the request is judged as received, but for its method.
    public func matches(_ response: HttpResponse, in exchange: Exchange) throws(Pattern.LimitReached) -> Bool {
        try options.request.truth(of: exchange.heldRequest, from: exchange, asReceived: true) {
            asked throws(Pattern.LimitReached) in
            if let statuses = asked.statuses, !statuses.contains(response.status.code) { return false }
            if !asked.responders.isEmpty, !asked.responders.contains(exchange.responder.name) { return false }
            for header in asked.headers where try !response.fields.match(header, within: &exchange.patternTime) {
                return false
            }
            return true
        } ?? false
    }

    /// Whether the request is one that the condition means, judged as received; `nil` where that depends on the response.
    func matchesReceived(
        _ request: HttpRequest, from source: some RequestSource
    ) throws(Pattern.LimitReached) -> Bool? {
        try options.request.truth(of: request, from: source, asReceived: true)
    }
}
