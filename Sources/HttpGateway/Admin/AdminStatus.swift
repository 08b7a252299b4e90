import GatewayConfig
import Glibc
import HttpWare

extension AdminEndpoint {
    /// The gateway at a glance, and its end.
    static func status(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/status", access: .known) { _, exchange in
                .abort(with: .json(status(subject, at: exchange.now)))
            },
            AdminEndpoint(path: "/v1/stop", access: .known, isWrite: true) { request, _ in
                let now = request.parameter("now") ?? "false"
                guard now == "true" || now == "false" else {
                    return .abort(with: .problem(.badRequest, "now is true or false"))
                }
                subject.stop(now == "true")
                return .abort(with: .json(.object([("process", .number(Int(getpid())))])))
            },
        ]
    }

    private static func status(_ subject: AdminSubject, at now: LoopInstant) -> Json {
        let status = subject.status.now
        let process = ProcessNumbers()
        let started = WallTime(seconds: Int64(process.startSeconds))
        let isUp = { (service: UpstreamService) in service.reports(at: now).allSatisfy { $0.state != .unhealthy } }
        let services = status.configuration.services.map(\.name)
        let down = services.filter { name in
            status.services[name].map { $0.notes.reachability.isDown || !isUp($0) } ?? false
        }
        return .object([
            ("version", .text(Gateway.version)),
            ("phase", .text(subject.phase().rawValue)),
            ("process", .number(Int(getpid()))),
            ("started", .text(GatewayLog.stamp(started))),
            ("files", .list(files(of: status).map { .text($0) })),
            ("lastReload", lastReload(status)),
            ("listeners", .list(status.addresses.map(listener))),
            ("admin", .optional(status.adminAddress.map { "\($0)" })),
            ("routes", .number(status.configuration.routes.count)),
            ("services", .list(services.map { .text($0) })),
            ("servicesWithFailures", .list(down.map { .text($0) })),
            ("memoryBytes", .number(process.residentBytes)),
            ("cpuMilliseconds", .number(Int(process.cpuSeconds * 1000))),
            ("descriptors", .number(process.openDescriptors)),
        ])
    }

    private static func listener(_ listener: GatewayStatus.Address) -> Json {
        .object([
            ("name", .text(listener.name)), ("mode", .text(listener.mode.rawValue)),
            ("tls", .bool(listener.isSecure)), ("address", .text("\(listener.address)")),
        ])
    }
}
