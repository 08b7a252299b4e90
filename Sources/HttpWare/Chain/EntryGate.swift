/// Decides whether an entry of a chain acts on an exchange, in addition to its condition: for a filter, or a rule that expires.
///
/// Called on the loop of the exchange before content is collected for the ware, perhaps several times per run of the ware.
public protocol EntryGate: Sendable {
    /// Whether the decision about a request needs the start of its content (`Exchange.beginningOfContent`). Read once, when the
    /// chain is built.
    var needsRequestContent: Bool { get }
    /// Whether the ware acts on the request.
    func admits(_ request: HttpRequest, in exchange: Exchange) -> Bool
    /// Whether the postware acts on the response.
    func admits(_ response: HttpResponse, in exchange: Exchange) -> Bool
}

/// Effects of wares on an exchange beyond its messages: slowing it down, or breaking it off. Most exchanges have none.
final class Intervention {
    fileprivate var requestPaces: [any ContentPace] = []
    fileprivate var responsePaces: [any ContentPace] = []
    /// The response is cut after this many bytes of content.
    var cut: Int?
    /// The client gets no response: its connection or stream is reset.
    var isBrokenOff = false
    /// The numbers of the rules that acted on the exchange.
    var rules: [Int] = []

    /// The pace of the request's content; `nil` if it is not slowed.
    var requestPace: (any ContentPace)? { JointPace.of(requestPaces) }
    /// The pace of the response's content; `nil` if it is not slowed.
    var responsePace: (any ContentPace)? { JointPace.of(responsePaces) }
    /// Whether the response's content is slowed or cut.
    var changesResponse: Bool { !responsePaces.isEmpty || cut != nil }

    /// Adds a pace, unless it is there: a ware may run again.
    fileprivate static func add(_ pace: any ContentPace, to paces: inout [any ContentPace]) {
        if !paces.contains(where: { $0 === pace }) { paces.append(pace) }
    }
}

extension Exchange {
    private var ownIntervention: Intervention {
        if let intervention { return intervention }
        let made = Intervention()
        intervention = made
        return made
    }

    /// Sends the content of the request upstream at this pace, and at that of each other ware that calls this. For middlewares.
    ///
    /// A pace acts behind all filters, so it counts the bytes that leave: compressed ones behind `compress`.
    public func slowRequest(by pace: any ContentPace) { Intervention.add(pace, to: &ownIntervention.requestPaces) }

    /// Sends the content of the response downstream at this pace, and at that of each other ware that calls this. For postwares and
    /// response halves.
    public func slowResponse(by pace: any ContentPace) { Intervention.add(pace, to: &ownIntervention.responsePaces) }

    /// Cuts the response after this many bytes of content; `nil` cancels the cut. The last call counts.
    public func cutResponse(after bytes: Int?) {
        if bytes != nil || intervention != nil { ownIntervention.cut = bytes }
    }

    /// Resets the client's connection or stream instead of sending a response.
    public func breakOff() { ownIntervention.isBrokenOff = true }

    /// Whether the exchange gets no response.
    public var isBrokenOff: Bool { intervention?.isBrokenOff ?? false }

    /// The numbers of the rules that acted on the exchange so far.
    public var rules: [Int] { intervention?.rules ?? [] }

    /// Records that a rule acts on the exchange. Returns whether the rule is new to it.
    @discardableResult
    public func noteRule(_ number: Int) -> Bool {
        if rules.contains(number) { return false }
        ownIntervention.rules.append(number)
        return true
    }

    /// Whether the gateway put a token into the request, or will do so.
    public var carriesToken: Bool { holdsInjection || tokenSwaps != nil || boundAuthority != nil }
}
