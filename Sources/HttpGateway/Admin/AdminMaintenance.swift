import GatewayConfig
import HttpWare

extension AdminEndpoint {
    /// Whether the gateway is in maintenance, and beginning or ending it.
    static func maintenance(_ subject: AdminSubject) -> [AdminEndpoint] {
        guard let rules = subject.rules else { return [] }
        return [
            AdminEndpoint(path: "/v1/maintenance", access: .known) { _, exchange in
                .abort(with: shown(rules.maintenance, exchange.wallNow))
            },
            AdminEndpoint(path: "/v1/maintenance", access: .known, isWrite: true) { request, exchange in
                let known = Set(subject.status.now.configuration.routes.map(\.name))
                let now = exchange.wallNow
                do throws(Maintenance.Mistake) {
                    let wanted = try Maintenance.read(request.content, routes: known, now: now)
                    return .wait { _, _ in
                        await rules.set(wanted)
                        return .abort(with: shown(wanted, now))
                    }
                } catch {
                    return .abort(with: .problem(.badRequest, error.detail))
                }
            },
        ]
    }

    private static func shown(_ maintenance: Maintenance?, _ now: WallTime) -> HttpResponse {
        .json(maintenance.flatMap { $0.isOn(at: now) ? $0.json(at: now) : nil } ?? Maintenance.off)
    }
}
