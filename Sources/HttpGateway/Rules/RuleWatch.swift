import HttpWare

/// Watches for exchanges that rules would act on, but that end before they reach them. It stands before all wares, and changes nothing.
struct RuleWatch: Middleware, ExchangeObserver {
    /// The rules that act on requests, each with its gate.
    let rules: [(rule: Rule, gate: RuleGate)]

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }

    func ended(_ exchange: Exchange) {
        guard let request = exchange.request, let reason = reason(exchange, request) else { return }
        for (rule, gate) in rules where !exchange.rules.contains(rule.id) && gate.admits(request, in: exchange) {
            rule.noteMiss(reason)
        }
    }

    /// Why no rule could act on the exchange; `nil` if it reached them, or the client left.
    private func reason(_ exchange: Exchange, _ request: HttpRequest) -> String? {
        if exchange.end == .clientLeft { return nil }
        if request.method == .connect {
            guard exchange.responder == .upstream else { return nil }
            let reason = exchange.unread.map { " (\($0.rawValue))" } ?? ""
            return "the tunnel to \(request.host ?? "its host") passed unread\(reason)"
        }
        return switch exchange.responder {
        case .upstream, .interception: nil
        case .cache: "a stored response answered first"
        case .ware(let label): "\(label) answered first"
        case .gateway: exchange.failure.map { "the gateway answered first: \($0.fault)" }
        }
    }
}
