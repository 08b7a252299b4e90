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
