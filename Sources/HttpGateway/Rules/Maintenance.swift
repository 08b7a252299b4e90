import HttpWare

/// A time in which the gateway, or some of its routes, answers 503 to requests.
struct Maintenance: Sendable {
    /// When it ends; `nil` if an operator has to end it.
    var until: WallTime?
    /// The routes that are in maintenance; empty for all routes.
    var routes: [String] = []
    /// The clients that are still served.
    var allow: [IPNetwork] = []
    /// The message for clients: one sentence without a full stop.
    var message = "the service is down for maintenance"

    /// Whether the maintenance has not ended yet.
    func isOn(at now: WallTime) -> Bool { until.map { now < $0 } ?? true }

    func json(at now: WallTime) -> Json {
        .object([
            ("on", .bool(true)), ("until", .optional(until?.rfc3339)), ("routes", .list(routes.map(Json.text))),
            ("allow", .list(allow.map { .text("\($0)") })), ("message", .text(message)),
        ])
    }

    static let off = Json.object([("on", .bool(false))])
}

/// The ware that runs before all others during maintenance.
struct MaintenanceWare: Middleware {
    let maintenance: Maintenance

    /// The `Retry-After` in seconds if the end is unknown.
    private static let usualRetry: Int64 = 60

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let now = exchange.wallNow
        guard maintenance.isOn(at: now),
            maintenance.routes.isEmpty || exchange.route.map(maintenance.routes.contains) ?? false,
            !(exchange.client.map { client in maintenance.allow.contains { $0.contains(client) } } ?? false)
        else { return .pass }
        exchange.note("rejected: maintenance", asDecision: true)
        var response = HttpResponse.problem(.serviceUnavailable, maintenance.message)
        let left = maintenance.until.map { max(1, ($0 - now).components.seconds + 1) } ?? Self.usualRetry
        try? response.fields.append(.retryAfter, "\(left)")
        return .abort(with: response)
    }
}

extension Maintenance {
    /// Why the request is invalid.
    struct Mistake: Error { let detail: String }

    private static let longest = Duration.seconds(30 * 86_400)
    private static let longestMessage = 500
    private static let mostMembers = 1000

    /// Reads a request to the admin listener. `nil` if it ends the maintenance.
    static func read(_ content: [UInt8], routes known: Set<String>, now: WallTime) throws(Mistake) -> Maintenance? {
        guard let json = try? JsonValue(content), let members = json.members, case .boolean(let isOn)? = json["on"]
        else {
            throw Mistake(detail: "write a JSON object with on: true or false")
        }
        let options = ["on", "for", "until", "routes", "allow", "message"]
        if let other = members.first(where: { !options.contains($0.name) }) {
            throw Mistake(detail: "\(other.name.quotedForErrors) is unknown; use \(options.joined(separator: ", "))")
        }
        guard isOn else {
            guard members.count == 1 else { throw Mistake(detail: "on: false takes nothing else") }
            return nil
        }
        var maintenance = Maintenance()
        maintenance.until = try end(json, now)
        maintenance.routes = try texts(json["routes"], "routes")
        if let other = maintenance.routes.first(where: { !known.contains($0) }) {
            throw Mistake(detail: "routes: there is no route \(other.quotedForErrors)")
        }
        maintenance.allow = try texts(json["allow"], "allow").map { text throws(Mistake) in
            guard let network = IPNetwork(text) else {
                throw Mistake(
                    detail: "allow: \(text.quotedForErrors) is not a network, such as 192.0.2.1 or 10.0.0.0/8")
            }
            return network
        }
        if let given = json["message"], given != .null {
            guard let text = given.string, !text.isEmpty, text.utf8.count <= longestMessage,
                text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f })
            else { throw Mistake(detail: "message is one line of at most \(longestMessage) bytes") }
            maintenance.message = text.hasSuffix(".") ? String(text.dropLast()) : text
        }
        return maintenance
    }

    private static func end(_ json: JsonValue, _ now: WallTime) throws(Mistake) -> WallTime? {
        let time = json["for"].flatMap { $0 == .null ? nil : $0 }
        let until = json["until"].flatMap { $0 == .null ? nil : $0 }
        guard time == nil || until == nil else { throw Mistake(detail: "write for or until, not both") }
        if let time {
            guard let given = time.string.flatMap({ try? Duration(optionText: $0) }), given > .zero, given <= longest
            else { throw Mistake(detail: "for is a time such as 30m, at most \(longest.optionText)") }
            return now + given
        }
        guard let until else { return nil }
        guard let given = until.string.flatMap(WallTime.init(iso8601:)), now < given, given - now <= longest else {
            throw Mistake(
                detail: "until is a time to come such as 2026-11-21T05:20:00Z, at most \(longest.optionText) from now")
        }
        return given
    }

    private static func texts(_ value: JsonValue?, _ name: String) throws(Mistake) -> [String] {
        guard let value, value != .null else { return [] }
        guard case .array(let members) = value, members.count <= mostMembers else {
            throw Mistake(detail: "\(name) is a list of at most \(mostMembers) texts")
        }
        return try members.map { member throws(Mistake) in
            guard let text = member.string else { throw Mistake(detail: "\(name) is a list of texts") }
            return text
        }
    }
}
