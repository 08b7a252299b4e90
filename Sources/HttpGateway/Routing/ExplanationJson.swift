import GatewayConfig
import HttpWare

/// An explanation as JSON, for programs. Missing parts are `null`.
public struct ExplanationJson {
    private let explanation: Explanation
    private let mask: ExplanationMask

    public init(_ explanation: Explanation) {
        self.explanation = explanation
        mask = ExplanationMask(explanation)
    }

    /// The object as text, on one line.
    public var text: String { json.text }

    /// The explanation as one object.
    var json: Json {
        let run = explanation.run
        let listener = explanation.listener
        let asked = explanation.asked
        return Json.object([
            ("request", head(asked[0], Array(asked.dropFirst()))),
            (
                "listener",
                .object([
                    ("name", shown(listener.name)), ("mode", shown(listener.mode.rawValue)),
                    ("bind", shown("\(listener.bind)")), ("at", at(listener.location)),
                ])
            ),
            ("interception", explanation.interception.map(shown) ?? .null),
            ("passed", .list(explanation.passed.map(passed))),
            ("route", explanation.route.map { route($0.route) } ?? .null),
            ("captures", .object(run.captures.map { ($0.name, shown($0.value)) })),
            ("service", explanation.service.map(service) ?? .null),
            ("split", .list((explanation.route?.route.shares ?? []).map(\.json))),
            ("sticky", (explanation.route?.route.sticky?.words).map(shown) ?? .null),
            (
                "middlewares",
                .list(zip(explanation.chain.entries.middlewares, run.middlewares).map { middleware($0, $1) })
            ),
            (
                "postwares",
                .list(
                    zip(explanation.chain.entries.postwares, run.postwares).map { entry, meaning in
                        .object(described(entry) + [("decision", shown(meaning.word))])
                    })
            ),
            ("upstream", upstream(run)),
            ("answer", answer(run)),
        ])
    }

    // MARK: Parts

    private func head(_ line: String, _ fields: [String]) -> Json {
        .object([("line", shown(mask.target(line))), ("fields", .list(fields.map { shown(mask.line($0)) }))])
    }

    private func passed(_ one: Explanation.Passed) -> Json {
        .object([
            ("name", shown(one.route.name)), ("at", at(one.route.location)), ("part", shown(one.part)),
            ("reason", shown(one.reason)),
        ])
    }

    private func route(_ route: RouteDefinition) -> Json {
        .object([("name", shown(route.name)), ("at", at(route.location))])
    }

    private func service(_ service: ConfiguredService) -> Json {
        let endpoints = service.endpoints.map { endpoint -> Json in
            .object([
                ("url", shown(endpoint.url)),
                ("weight", .number(endpoint.weight)), ("backup", .bool(endpoint.isBackup)),
                ("at", at(endpoint.location)),
            ])
        }
        return .object([
            ("name", shown(service.name)), ("at", at(service.location)), ("endpoints", .list(endpoints)),
            ("fallback", service.fallbacks.first.map(shown) ?? .null),
        ])
    }

    private func described(_ entry: ChainEntry) -> [(String, Json)] {
        [
            ("label", shown(entry.label)), ("ware", shown(entry.wareName)), ("at", at(entry.location)),
            ("options", entry.options.isEmpty ? .object([]) : mask.options(entry.options).jsonValue),
            ("if", entry.condition.map { shown($0.options.words) } ?? .null),
        ]
    }

    private func middleware(_ entry: ChainEntry, _ step: DryRun.Step) -> Json {
        var reason = Json.null
        if case .failed(let why) = step.decision { reason = shown(why) }
        return .object(
            described(entry) + [
                ("decision", shown(step.decision.word)), ("reason", reason),
                ("notes", .list(step.notes.map { shown($0) })),
                ("target", step.target.map { shown(mask.target($0)) } ?? .null),
                ("added", .list(step.added.map { shown(mask.line($0)) })),
                ("removed", .list(step.removed.map { shown(mask.line($0)) })),
            ])
    }

    private func upstream(_ run: DryRun) -> Json {
        guard let destination = run.destination else { return .null }
        return .object([
            ("to", shown(destination)), ("isTunnel", .bool(run.head.isEmpty)),
            ("isAddressJudged", .bool(run.isAddressJudged)),
            ("head", run.head.first.map { head($0, Array(run.head.dropFirst())) } ?? .null),
        ])
    }

    private func answer(_ run: DryRun) -> Json {
        guard let response = run.response else { return .null }
        let fields = response.fields.map { shown(mask.line("\($0.name): \($0.value)")) }
        return .object([
            ("by", shown(run.responder.name)), ("status", .number(response.status.code)),
            ("because", run.failure.map { shown($0.reason) } ?? .null), ("fields", .list(fields)),
            ("content", response.content.bytes.map { shown(String(decoding: $0, as: UTF8.self)) } ?? .null),
        ])
    }

    /// A text, without secrets.
    private func shown(_ text: String) -> Json { .text(mask.text(text)) }

    private func at(_ location: SourceLocation) -> Json { location == .code ? .null : shown("\(location)") }
}
