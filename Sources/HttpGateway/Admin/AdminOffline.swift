import GatewayConfig
import HttpWare
import Wares

extension AdminEndpoint {
    /// The modes of `offline`, and setting another mode for a while.
    static func offline(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/offline", access: .known) { request, exchange in
                .abort(with: makeResponse(switches(subject), exchange.wallNow))
            },
            AdminEndpoint(path: "/v1/offline", access: .known, isWrite: true) { request, exchange in
                .abort(with: set(request, switches(subject), exchange.wallNow))
            },
        ]
    }

    /// The default and the maximum duration of a mode. It always ends, so that it cannot be forgotten.
    private static let usualTime = Duration.seconds(3600)
    private static let longestTime = Duration.seconds(30 * 86_400)

    private static func set(_ request: AdminRequest, _ all: [Switch], _ now: WallTime) -> HttpResponse {
        let known = ["mode", "for", "label"]
        guard request.names.allSatisfy(known.contains) else {
            return .problem(.badRequest, "there is no such parameter; use \(known.joined(separator: ", "))")
        }
        let word = request.text("mode") ?? ""
        let mode = OfflineMode(rawValue: word)
        guard mode != nil || word == "configured" else {
            return .problem(.badRequest, "mode is auto, always, never or configured")
        }
        var time = usualTime
        if let text = request.text("for") {
            guard let given = try? Duration(optionText: text), given > .zero, given <= longestTime else {
                return .problem(.badRequest, "for is a time such as 10m or 1h, at most \(longestTime.optionText)")
            }
            time = given
        }
        let label = request.text("label")
        let meant = all.filter { label == nil || $0.label == label }
        guard !meant.isEmpty else {
            return .problem(
                .notFound, label == nil ? "no chain has offline" : "there is no entry of offline with this label")
        }
        for state in meant.flatMap(\.states) { state.set(mode, until: now + time) }
        return makeResponse(meant, now)
    }

    private static func makeResponse(_ switches: [Switch], _ now: WallTime) -> HttpResponse {
        .json(.object([("offline", .list(switches.flatMap { $0.json(now) }))]))
    }

    /// The wares of one label, each once.
    private struct Switch {
        let label: String
        var states: [OfflineState] = []

        func json(_ now: WallTime) -> [Json] {
            states.map { state in
                let override = state.override(at: now)
                return .object([
                    ("label", .text(label)), ("mode", .text(state.mode(at: now).rawValue)),
                    ("configured", .text(state.configured.rawValue)), ("overridden", .bool(override != nil)),
                    ("until", .optional(override?.until.map(GatewayLog.stamp))),
                ])
            }
        }
    }

    private static func switches(_ subject: AdminSubject) -> [Switch] {
        subject.status.now.configuration.partsByLabel { ($0 as? any OfflineSwitch)?.state }
            .map { Switch(label: $0.label, states: $0.parts) }
    }
}
