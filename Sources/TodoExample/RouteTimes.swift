import HttpWareClient
import Synchronization

/// The total time of each route's requests: a ware of the app itself, which works in both directions.
final class RouteTimes: Middleware, Postware {
    private let times = Mutex<[String: Duration]>([:])

    // Runs before all other wares, so that it measures them, too.
    var order: WareOrder { .first }

    // On the way out, notes the start time.
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        exchange[Began.self] = exchange.now
        return .pass
    }

    // On the way back, adds the time since then.
    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if let began = exchange[Began.self], let route = exchange[ClientRequest.self]?.route {
            times.withLock { $0[route, default: .zero] += exchange.now - began }
        }
        return .pass
    }

    /// The times by route name.
    var all: [(route: String, time: Duration)] {
        times.withLock { times in times.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    }

    private enum Began: ExchangeKey { typealias Value = LoopInstant }
}
