import HttpWare
import Synchronization

/// Remembers what a ware behind those under test finds in the exchange.
final class Seen: Middleware {
    private let found = Mutex<[String]>([])
    private let template: Template

    init(_ template: Template = "") { self.template = template }

    /// Method and name of each principal, in order.
    var principals: [String] { found.withLock { $0 } }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let text = template.text(request, in: exchange)
        found.withLock { found in
            found += exchange.principals.map { "\($0.method) \($0.name)" }
            if !text.isEmpty { found.append(text) }
        }
        return .pass
    }
}

/// Remembers by what principals are told apart, and how they are called.
final class Identities: Middleware {
    private let found = Mutex<[Principal]>([])

    var names: [String] { found.withLock { $0.map(\.name) } }

    /// A number for each, the same for the same identity, in the order of the first ones.
    var same: [Int] {
        var known: [Digest256] = []
        return found.withLock { $0 }.map { principal in
            if let index = known.firstIndex(of: principal.identity) { return index }
            known.append(principal.identity)
            return known.count - 1
        }
    }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        found.withLock { $0 += exchange.principals }
        return .pass
    }
}
