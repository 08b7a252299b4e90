/// Decides whether an entry of a chain acts on an exchange, beside its condition: a filter, or a rule with an end.
///
/// Asked on the loop of the exchange before content is collected for the ware, perhaps more than once for one turn.
public protocol EntryGate: Sendable {
    /// Whether the decision about a request needs the beginning of its content (`Exchange.beginningOfContent`). Read once, when the
    /// chain is made.
    var needsRequestContent: Bool { get }
    /// Whether the ware acts on the request.
    func admits(_ request: HttpRequest, in exchange: Exchange) -> Bool
    /// Whether the postware acts on the response.
    func admits(_ response: HttpResponse, in exchange: Exchange) -> Bool
}

/// How fast content passes. Asked on the loop of the exchange; one object may serve exchanges of all loops.
public protocol ContentPace: AnyObject, Sendable {
    /// Reserves the passage of some of these bytes: how many of them pass, at least one, and how long they wait before.
    func reserve(_ count: Int, at now: LoopInstant) -> (count: Int, wait: Duration)
}

/// What wares do to an exchange beyond its messages: slow it down, break it off. Most exchanges have none.
final class Intervention {
    var requestPace: (any ContentPace)?
    var responsePace: (any ContentPace)?
    /// The response is broken off behind this many bytes of content.
    var cut: Int?
    /// The client gets no response: its connection, or its stream, is reset.
    var isBrokenOff = false
    /// The numbers of the rules that acted on the exchange.
    var rules: [Int] = []

    /// Whether the content of the response does not simply pass.
    var changesResponse: Bool { responsePace != nil || cut != nil }
}

extension Exchange {
    private var ownIntervention: Intervention {
        if let intervention { return intervention }
        let made = Intervention()
        intervention = made
        return made
    }

    /// Sends the content of the request upstream at this pace. For middlewares.
    public func slowRequest(by pace: any ContentPace) { ownIntervention.requestPace = pace }

    /// Sends the content of the response downstream at this pace. For postwares and response halves.
    public func slowResponse(by pace: any ContentPace) { ownIntervention.responsePace = pace }

    /// Breaks the response off behind this many bytes of content; `nil` takes that back.
    public func cutResponse(after bytes: Int?) {
        if bytes != nil || intervention != nil { ownIntervention.cut = bytes }
    }

    /// Breaks the exchange off in place of a response: the client's connection, or its stream, is reset.
    public func breakOff() { ownIntervention.isBrokenOff = true }

    /// Whether the exchange gets no response.
    public var isBrokenOff: Bool { intervention?.isBrokenOff ?? false }

    /// The numbers of the rules that acted on the exchange so far.
    public var rules: [Int] { intervention?.rules ?? [] }

    /// Says that a rule acts on the exchange. Answers whether that is new.
    @discardableResult
    public func noteRule(_ number: Int) -> Bool {
        if rules.contains(number) { return false }
        ownIntervention.rules.append(number)
        return true
    }

    /// Whether the gateway put a token into the request, or is about to.
    public var carriesToken: Bool { !injectedFields.isEmpty || tokenSwaps != nil || boundAuthority != nil }
}
