public import GatewayConfig
public import HttpWare

extension FoundServices {
    /// The found programs, and their mistakes, as the admin listener and `httpware discover` report it.
    public var json: Json {
        .object([
            (
                "instances",
                .list(
                    instances.map { instance in
                        .object([
                            ("service", .text(instance.service)), ("source", .text(instance.source)),
                            ("place", .text(instance.place)),
                            ("addresses", .list(instance.addresses.map { .text("\($0)") })),
                            ("unused", .optional(reason(for: instance))),
                        ])
                    })
            ),
            (
                "problems",
                .list(
                    problems.map { problem in
                        .object([
                            ("place", .text(problem.place)), ("message", .text(problem.message)),
                            ("leftOut", .bool(problem.leavesOut)),
                        ])
                    })
            ),
        ])
    }
}
