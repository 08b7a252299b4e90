import GatewayConfig
import HttpWare

extension AdminEndpoint {
    /// The hosts whose tunnels pass unread because a client refused the gateway's certificate, and reading them again.
    static func unread(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/unread", access: .known) { _, exchange in
                let now = exchange.now.nanoseconds
                let passing = hosts(subject).flatMap { $0.passing(at: now) }.sorted { $0.id < $1.id }
                return .abort(with: .json(.object([("unread", .list(passing.map { json($0, exchange.wallNow) }))])))
            },
            AdminEndpoint(path: "/v1/unread", access: .known, isDelete: true) { _, exchange in
                .abort(with: readAgain(nil, subject, exchange))
            },
            AdminEndpoint(path: "/v1/unread/*", access: .known, isDelete: true) { request, exchange in
                guard let id = Int(request.argument) else { return .abort(with: unknown) }
                return .abort(with: readAgain(id, subject, exchange))
            },
        ]
    }

    private static let unknown = HttpResponse.problem(.notFound, "no host with this id passes unread")

    private static func readAgain(_ id: Int?, _ subject: AdminSubject, _ exchange: Exchange) -> HttpResponse {
        let count = hosts(subject).reduce(0) { $0 + $1.readAgain(id, at: exchange.now.nanoseconds) }
        return id != nil && count == 0 ? unknown : .json(.object([("readAgain", .number(count))]))
    }

    /// The memories of the authorities of all listeners, each once.
    private static func hosts(_ subject: AdminSubject) -> [PinnedHosts] {
        var found: [PinnedHosts] = []
        for listener in subject.status.now.configuration.listeners {
            guard let pinned = listener.intercept?.authority.pinned, !found.contains(where: { $0 === pinned }) else {
                continue
            }
            found.append(pinned)
        }
        return found
    }

    private static func json(_ passing: PinnedHosts.Passing, _ now: WallTime) -> Json {
        .object([
            ("id", .text(String(passing.id))), ("host", .text(passing.host)),
            ("client", .optional(passing.client.map { "\($0)" })), ("principal", .optional(passing.principal)),
            ("until", .text(GatewayLog.stamp(now + .nanoseconds(passing.remaining)))),
            ("tunnels", .number(passing.tunnels)),
        ])
    }
}
