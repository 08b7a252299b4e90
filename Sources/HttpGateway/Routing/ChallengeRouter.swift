import Acme
import HttpWare

/// Answers pending http-01 challenges before any route and chain. All other requests go to the routes.
struct ChallengeRouter: ExchangeRouter {
    private let routes: RouteTable
    private let challenges: PendingChallenges
    private let own: ExchangePlan

    init(_ routes: RouteTable, challenges: PendingChallenges) {
        self.routes = routes
        self.challenges = challenges
        // Cannot throw: the middleware is on its side.
        let chain = try? WareChain(
            middlewares: [ChainEntry(ChallengeWare(challenges: challenges), label: "acme")], postwares: [])
        own = ExchangePlan(chain: chain ?? .empty, service: nil, route: nil, isOwn: true)
    }

    var listenerPlan: ExchangePlan { routes.listenerPlan }

    func service(named name: String) -> UpstreamService? { routes.service(named: name) }

    func plan(
        for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
    ) throws(Pattern.LimitReached) -> ExchangePlan {
        if challenges.hasHttp, challenges.answer(request.path) != nil { return own }
        return try routes.plan(for: request, captures: &captures)
    }

    func plan(for exchange: Exchange) throws(Pattern.LimitReached) -> ExchangePlan {
        if challenges.hasHttp, let path = exchange.request?.path, challenges.answer(path) != nil { return own }
        return try routes.plan(for: exchange)
    }
}

/// Answers a challenge of http-01. RFC 8555 §8.3.
private struct ChallengeWare: Middleware {
    let challenges: PendingChallenges

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard request.method == .get || request.method == .head else {
            return .abort(with: HttpResponse(.methodNotAllowed, fields: ["Allow": "GET, HEAD"]))
        }
        guard let answer = challenges.answer(request.path) else { return .abort(with: HttpResponse(.notFound)) }
        exchange.note("answered: the challenge of a certificate authority", asDecision: true)
        return .abort(
            with: HttpResponse(
                .ok, fields: ["Content-Type": "application/octet-stream", "Cache-Control": "no-store"],
                content: .text(answer)))
    }
}
