/// A compiled `if`: decides whether an entry of a chain runs. Keys are ANDed, members of a list ORed.
public struct Condition: Sendable {
    /// The condition as written.
    public let options: ConditionOptions
    /// Whether the condition, or a member of its `not` or `any`, depends on the response.
    let asksResponse: Bool

    public init(_ options: ConditionOptions) {
        self.options = options
        asksResponse = options.request.asksResponse
    }

    /// Whether the request meets the condition; tests of the response are left out. A test of a part that a partial
    /// request lacks is not met.
    public func matches(_ request: HttpRequest, in exchange: Exchange) throws(Pattern.LimitReached) -> Bool {
        try options.request.truth(of: request, from: exchange) ?? true
    }

    /// Whether the response meets the condition; the request is judged as received, except for its method.
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

    /// Whether the request meets the condition, judged as received; `nil` if that depends on the response.
    func matchesReceived(
        _ request: HttpRequest, from source: some RequestSource
    ) throws(Pattern.LimitReached) -> Bool? {
        try options.request.truth(of: request, from: source, asReceived: true)
    }
}
