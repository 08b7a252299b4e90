import Credentials
import GatewayConfig
import HttpWare
import Wares

extension AdminEndpoint {
    /// The credentials and the results of their refreshes, without tokens; refreshing and clearing a credential.
    static func credentials(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/credentials", access: .known) { _, _ in
                let all = subject.status.now.configuration.credentials
                return .abort(
                    with: .json(.object([("credentials", .list(all.map { json($0) }))])))
            },
            AdminEndpoint(path: "/v1/credentials/*/refresh", access: .known, isWrite: true) { request, _ in
                act(on: request, subject) { credential in
                    // Runs on a loop that carries exchanges, because the admin loop cannot resolve names.
                    let failure = await Task(executorPreference: subject.loop) { await credential.refresh() }.value
                    guard let failure else { return nil }
                    return .problem(.badGateway, "credential \(credential.name): \(failure.reason)")
                }
            },
            AdminEndpoint(path: "/v1/credentials/*/clear", access: .known, isWrite: true) { request, _ in
                act(on: request, subject) { credential in
                    await credential.clear()
                    return nil
                }
            },
        ]
    }

    /// Runs `body` for the credential in the path. Answers with its response, or else with the new state of the
    /// credential.
    private static func act(
        on request: AdminRequest, _ subject: AdminSubject,
        _ body: @escaping @Sendable (Credential) async -> HttpResponse?
    ) -> Verdict {
        let found = subject.status.now.configuration.credentials.first { $0.name == request.argument }
        guard let found else { return .abort(with: .problem(.notFound, "there is no credential with this name")) }
        return .wait { _, _ in
            if let problem = await body(found.credential) { return .abort(with: problem) }
            return .abort(with: .json(json(found)))
        }
    }

    private static func json(_ configured: ConfiguredCredential) -> Json {
        let report = configured.credential.report()
        return .object([
            ("name", .text(report.name)), ("grant", .text(report.grant.rawValue)),
            ("state", .text(report.state.rawValue)), ("token", .number(report.token)),
            ("expires", .optional(report.expires.map(GatewayLog.stamp))),
            ("held", .number(report.held)), ("heldBytes", .number(report.heldBytes)),
            ("heldTotal", .number(report.heldTotal)), ("overflows", .number(report.overflows)),
            ("timeouts", .number(report.timeouts)),
            ("pausedForMilliseconds", report.pausedFor.map { .number($0.milliseconds) } ?? .null),
            ("shortfall", .optional(report.shortfall)),
            ("lastRefresh", report.history.first.map(json) ?? .null),
            ("history", .list(report.history.map(json))), ("at", .text("\(configured.location)")),
        ])
    }

    private static func json(_ refresh: CredentialReport.Refresh) -> Json {
        .object([
            ("number", .number(refresh.number)), ("ended", .text(GatewayLog.stamp(refresh.ended))),
            ("durationMilliseconds", .number(refresh.duration.milliseconds)),
            ("outcome", .text(refresh.outcome.rawValue)), ("reason", .optional(refresh.reason)),
            ("held", .number(refresh.held)),
        ])
    }

    // MARK: Holds

    /// The entries that operators hold and release: `accumulate` with `while: manual`.
    static func holds(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/holds", access: .known) { _, _ in
                .abort(with: .json(.object([("holds", .list(gates(subject).map { json($0.label, $0.gates) }))])))
            },
            AdminEndpoint(path: "/v1/holds/*/open", access: .known, isWrite: true) { request, _ in
                set(false, request, subject)
            },
            AdminEndpoint(path: "/v1/holds/*/close", access: .known, isWrite: true) { request, _ in
                set(true, request, subject)
            },
        ]
    }

    private static func set(_ isClosed: Bool, _ request: AdminRequest, _ subject: AdminSubject) -> Verdict {
        guard let found = gates(subject).first(where: { $0.label == request.argument }) else {
            return .abort(with: .problem(.notFound, "there is no manual hold with this label"))
        }
        for gate in found.gates { gate.setClosed(isClosed) }
        return .abort(with: .json(json(found.label, found.gates)))
    }

    private static func json(_ label: String, _ gates: [any HoldGate]) -> Json {
        .object([
            ("label", .text(label)), ("closed", .bool(gates.contains { $0.isClosed })),
            ("held", .number(gates.reduce(0) { $0 + $1.heldCount })),
        ])
    }

    /// The manual holds of all chains by label, each ware once.
    private static func gates(_ subject: AdminSubject) -> [(label: String, gates: [any HoldGate])] {
        subject.status.now.configuration.partsByLabel { ware in
            (ware as? any HoldGate).flatMap { $0.isManual ? $0 : nil }
        }.map { ($0.label, $0.parts) }
    }
}
