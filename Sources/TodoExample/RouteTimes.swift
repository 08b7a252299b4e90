import HttpWareClient
import Synchronization

/// How long each route's requests took, all together: a ware of the app's own, which works in both directions.
final class RouteTimes: Middleware, Postware {
    private let times = Mutex<[String: Duration]>([:])

    // It stands before all others, and so measures them, too.
    var order: WareOrder { .first }

    // On the way out: when it began.
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        exchange[Began.self] = exchange.now
        return .pass
    }

    // On the way back: how long that is ago.
    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if let began = exchange[Began.self], let route = exchange[ClientRequest.self]?.route {
            times.withLock { $0[route, default: .zero] += exchange.now - began }
        }
        return .pass
    }

    /// By name.
    var all: [(route: String, time: Duration)] {
        times.withLock { times in times.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    }

    private enum Began: ExchangeKey { typealias Value = LoopInstant }
}
