import GatewayConfig
import HttpWare

/// The routes of one listener as they are looked up: the first that matches wins. One instance serves all loops.
final class RouteTable: ExchangeRouter {
    private struct Route: Sendable {
        let match: RequestMatch
        let headers: [(name: FieldName, values: [ValueMatch])]
        let isOpen: Bool
        /// CONNECT reaches a named service only by naming the authority.
        let takesConnect: Bool
        let capturing: [PathPattern]
        let plan: ExchangePlan
    }

    private let routes: [Route]
    let listenerPlan: ExchangePlan

    /// Joins each route with its service; services are made once and shared by name.
    init(_ listener: ListenerDefinition, services: [String: UpstreamService]) {
        listenerPlan = ExchangePlan(chain: listener.chain, service: nil, route: nil)
        routes = listener.routes.map { resolved in
            let route = resolved.route
            let match = route.match
            return Route(
                match: match,
                headers: match.headers.compactMap { named in FieldName(named.name).map { ($0, named.values) } },
                isOpen: match.isEmpty,
                takesConnect: route.service?.isPassthrough != false || !match.hosts.isEmpty,
                capturing: match.paths.filter { !$0.captures.isEmpty },
                plan: ExchangePlan(
                    chain: resolved.chain, service: route.service.flatMap { services[$0.name] }, route: route.name))
        }
    }

    func plan(
        for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
    ) throws(Pattern.LimitReached) -> ExchangePlan {
        let isConnect = request.method == .connect
        for route in routes {
            if isConnect && !route.takesConnect { continue }
            if !route.isOpen {
                guard try route.match.matchesTarget(of: request), try RouteTable.matches(route.headers, request) else {
                    continue
                }
                if !route.capturing.isEmpty { capture(route.capturing, request, &captures) }
            }
            return route.plan
        }
        return listenerPlan
    }

    private static func matches(
        _ headers: [(name: FieldName, values: [ValueMatch])], _ request: borrowing HttpRequest
    ) throws(Pattern.LimitReached) -> Bool {
        for header in headers where try !request.fields.matches(header.name, header.values) { return false }
        return true
    }

    private func capture(
        _ patterns: [PathPattern], _ request: borrowing HttpRequest, _ captures: inout [(name: String, value: String)]
    ) {
        let path = Array(request.path.utf8)
        for pattern in patterns {
            guard let ranges = path.withUnsafeBytes({ pattern.captured(in: $0) }) else { continue }
            captures = zip(pattern.captures, ranges).map { ($0, String(decoding: path[$1], as: UTF8.self)) }
            return
        }
    }
}
