import GatewayConfig
import HttpWare

extension AdminEndpoint {
    /// The configuration, the result of the last reload, and the reload itself.
    static func configuration(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/config", access: .known) { _, _ in
                .abort(with: .json(values(of: subject.status.now)))
            },
            AdminEndpoint(path: "/v1/routes", access: .known) { _, _ in
                .abort(with: .json(routes(of: subject.status.now)))
            },
            AdminEndpoint(path: "/v1/reload", access: .known, isWrite: true) { _, _ in
                .wait { _, _ in
                    let outcome = await withCheckedContinuation { continuation in
                        subject.reload { continuation.resume(returning: $0) }
                    }
                    return .abort(with: answer(to: outcome))
                }
            },
        ]
    }

    // MARK: /v1/config

    private static func values(of status: GatewayStatus.Snapshot) -> Json {
        let values = status.configuration.values
        return .object([
            ("files", .list(files(of: status).map { .text($0) })),
            ("lastReload", lastReload(status)),
            (
                "values",
                .list(
                    values.map { value in
                        .object([
                            ("path", .text(value.path)), ("value", .text(value.text ?? "***")),
                            ("secret", .bool(value.text == nil)), ("at", .text("\(value.location)")),
                        ])
                    })
            ),
        ])
    }

    /// The files that were read, each once.
    static func files(of status: GatewayStatus.Snapshot) -> [String] {
        var known: Set<String> = []
        return status.configuration.values.map(\.location.file).filter { known.insert($0).inserted }
    }

    static func lastReload(_ status: GatewayStatus.Snapshot) -> Json {
        .object([
            ("time", .text(GatewayLog.stamp(status.lastReload.time))),
            ("success", .bool(status.lastReload.outcome.isSuccess)),
            ("reloads", .number(status.reloads)),
            ("failed", .number(status.failedReloads)),
        ])
    }

    // MARK: /v1/routes

    private static func routes(of status: GatewayStatus.Snapshot) -> Json {
        // The conditions of a route are shown as written, so that secrets in them stay masked.
        var matches: [String: [Json]] = [:]
        for value in status.configuration.values {
            guard let range = value.path.firstRange(of: "].match.") else { continue }
            matches[String(value.path[..<range.lowerBound]), default: []].append(
                .object([
                    ("key", .text(String(value.path[range.upperBound...]))), ("value", .text(value.text ?? "***")),
                    ("at", .text("\(value.location)")),
                ]))
        }
        let listeners = status.configuration.listeners.map { listener -> Json in
            let address = status.addresses.first { $0.name == listener.name }?.address
            let routes = listener.routes.map { resolved -> Json in
                .object([
                    ("name", .text(resolved.route.name)),
                    ("at", .text("\(resolved.route.location)")),
                    ("match", .list(matches["routes[\(resolved.route.index)"] ?? [])),
                    ("service", .optional(resolved.route.service?.name)),
                    ("split", .list(resolved.route.shares.map(\.json))),
                    ("chain", chain(resolved.chain)),
                ])
            }
            return .object([
                ("name", .text(listener.name)),
                ("mode", .text(listener.mode.rawValue)),
                ("address", .text("\(address ?? listener.bind)")),
                ("at", .text("\(listener.location)")),
                ("chain", chain(listener.chain)),
                ("routes", .list(routes)),
            ])
        }
        return .object([("listeners", .list(listeners))])
    }

    private static func chain(_ chain: WareChain) -> Json {
        func entries(_ entries: [ChainEntry]) -> Json {
            .list(
                entries.map { entry in
                    .object([
                        ("label", .text(entry.label)), ("at", .text("\(entry.location)")),
                        ("conditional", .bool(entry.condition != nil)),
                    ])
                })
        }
        return .object([
            ("middlewares", entries(chain.entries.middlewares)), ("postwares", entries(chain.entries.postwares)),
        ])
    }

    // MARK: /v1/reload

    private static func answer(to outcome: ReloadOutcome) -> HttpResponse {
        func list(_ errors: [ConfigError]) -> Json { .list(errors.map { .text($0.description) }) }
        switch outcome {
        case .done(let changes, let warnings):
            return .json(.object([("changes", .number(changes)), ("warnings", list(warnings))]))
        case .refused(let errors):
            return .problem(
                .unprocessableContent, "the configuration has errors; the previous one stays in force",
                also: [("errors", list(errors))])
        case .failed(let reason):
            return .problem(.conflict, "\(reason); the previous configuration stays in force")
        }
    }
}
