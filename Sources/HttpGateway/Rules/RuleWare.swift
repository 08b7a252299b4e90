import HttpWare

/// The request half of a rule's ware, and its response half if it is two-sided.
///
/// It protects tokens: if a request carries a token, a rule cannot change its authority, and cannot add, remove or read the field
/// with the token.
struct RuleMiddleware: Middleware, ContentEditor, MessageShower {
    let rule: Rule
    let ware: any Middleware

    var contentNeed: ContentNeed { ware.contentNeed }
    var failsOpen: Bool { ware.failsOpen }
    var bindsAuthority: Bool { ware.bindsAuthority }
    var changesAuthority: Bool { ware.changesAuthority }

    func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        (ware as? any ContentEditor)?.contentLimit(of: request, in: exchange)
    }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        guard rule.takes(exchange) else { return .pass }
        if let refusal = rule.refusalOfReading(exchange) { return .abort(with: refusal) }
        let guarded = GuardedToken(request, exchange)
        let verdict = try ware.handle(&request, in: exchange)
        guard let guarded else { return verdict }
        switch verdict {
        case .pass: return guarded.refusal(request, rule).map { .abort(with: $0) } ?? .pass
        case .abort: return verdict
        case .wait(let continuing) where continuing.isHold: return verdict
        case .wait(let continuing):
            return .wait(
                continuing.then { request, _, verdict in
                    guard case .pass = verdict, let refusal = guarded.refusal(request, rule) else { return verdict }
                    return .abort(with: refusal)
                })
        }
    }
}

/// A two-sided ware of a rule.
struct RuleBothSides: Middleware, Postware, ExchangeObserver, MessageShower {
    let request: RuleMiddleware
    let response: any Postware

    var contentNeed: ContentNeed { request.contentNeed }
    var failsOpen: Bool { request.failsOpen }
    var mayReplay: Bool { response.mayReplay }
    var responseStatuses: StatusSet { response.responseStatuses }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try self.request.handle(&request, in: exchange)
    }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        guard exchange.rules.contains(request.rule.id) else { return .pass }
        return try self.response.handle(&response, in: exchange)
    }

    func ended(_ exchange: Exchange) {
        guard exchange.rules.contains(request.rule.id) else { return }
        (response as? any ExchangeObserver)?.ended(exchange)
    }
}

/// A rule's ware that acts on responses.
struct RulePostware: Postware, ContentEditor, MessageShower {
    let rule: Rule
    let ware: any Postware

    var contentNeed: ContentNeed { ware.contentNeed }
    var failsOpen: Bool { ware.failsOpen }
    var responseStatuses: StatusSet { ware.responseStatuses }

    func contentLimit(of response: HttpResponse, in exchange: Exchange) -> Int? {
        (ware as? any ContentEditor)?.contentLimit(of: response, in: exchange)
    }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        guard rule.takes(exchange) else { return .pass }
        if let refusal = rule.refusalOfReading(exchange) { return .replace(with: refusal) }
        return try ware.handle(&response, in: exchange)
    }
}

extension Rule {
    /// The refusal of an exchange whose token the rule would read; `nil` if it reads none.
    fileprivate func refusalOfReading(_ exchange: Exchange) -> HttpResponse? {
        guard !readFields.isEmpty,
            let field = exchange.injectedFields.first(where: { readFields.contains($0.text.lowercased()) })
        else { return nil }
        exchange.note("refused", asDecision: true)
        return .problem(.forbidden, "rule \(id) would read \(field), which holds a token of the gateway")
    }
}

/// A request that carries a token, in its state before a rule's ware.
private struct GuardedToken {
    private let target: HttpRequest
    private let fields: [(name: FieldName, values: [[UInt8]])]

    /// `nil` if the request carries no token.
    init?(_ request: HttpRequest, _ exchange: Exchange) {
        guard exchange.carriesToken else { return nil }
        target = request
        fields = exchange.injectedFields.map { ($0, request.fields.rawValues(of: $0)) }
    }

    func refusal(_ request: HttpRequest, _ rule: Rule) -> HttpResponse? {
        for (name, values) in fields where request.fields.rawValues(of: name) != values {
            return .problem(.forbidden, "rule \(rule.id) would change \(name), which holds a token of the gateway")
        }
        guard OriginRouter.isSame(request, target) else {
            return .problem(
                .forbidden,
                "rule \(rule.id) would send a token of the gateway to another place than \(target.host ?? "its host")")
        }
        return nil
    }
}
