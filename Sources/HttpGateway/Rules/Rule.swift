import Capturing
import HttpWare
import Synchronization

/// A temporary rule: a ware that is added to a running gateway, for the exchanges that match a filter.
///
/// Loops use it, and any thread reads it. The only mutable part is atomic.
final class Rule: Sendable {
    let id: Int
    let filter: CaptureFilter
    let ware: String
    /// The options as given, with `on`.
    let options: ConfigNode
    let reason: String
    let until: WallTime
    /// The maximum number of exchanges that it acts on; `nil` for no limit.
    let count: Int?
    /// The fields of requests that its placeholders read, in lower case.
    let readFields: [String]
    private let taken = Atomic(0)
    /// The number of exchanges that the filter matches but that ended before they reached the rule, and why the last one did.
    private let misses = Mutex((count: 0, reason: String?.none))

    init(
        id: Int, filter: CaptureFilter, ware: String, options: ConfigNode, reason: String, until: WallTime, count: Int?,
        readFields: [String]
    ) {
        self.id = id
        self.filter = filter
        self.ware = ware
        self.options = options
        self.reason = reason
        self.until = until
        self.count = count
        self.readFields = readFields
    }

    /// The number of exchanges that the rule acted on.
    var hits: Int { min(taken.load(ordering: .relaxed), count ?? .max) }

    /// Records an exchange that ended before it reached the rule.
    func noteMiss(_ reason: String) {
        misses.withLock {
            $0.count += 1
            $0.reason = reason
        }
    }

    /// Whether it may act on one more exchange.
    func isInForce(at now: WallTime) -> Bool {
        now < until && count.map { taken.load(ordering: .relaxed) < $0 } ?? true
    }

    /// Whether the rule acts on this exchange, which is counted once.
    func takes(_ exchange: Exchange) -> Bool {
        if exchange.rules.contains(id) { return true }
        guard exchange.wallNow < until else { return false }
        let number = taken.add(1, ordering: .relaxed).newValue
        if let count, number > count {
            taken.subtract(1, ordering: .relaxed)
            return false
        }
        exchange.noteRule(id)
        return true
    }

    var json: Json {
        let misses = misses.withLock { $0 }
        return .object([
            ("id", .text(String(id))), ("filter", .text(Redaction.text(filter.text))), ("ware", .text(ware)),
            ("options", options.isEmpty ? .object([]) : options.masked.jsonValue),
            ("reason", .text(Redaction.text(reason))),
            ("until", .text(until.rfc3339)), ("count", count.map(Json.number) ?? .null), ("hits", .number(hits)),
            ("missed", .number(misses.count)), ("missedBecause", .optional(misses.reason)),
        ])
    }
}

/// The gate of a rule: its time, its count, and its filter.
struct RuleGate: EntryGate {
    let rule: Rule
    /// The gate of the filter; `nil` if the ware itself applies the filter at the end.
    let filter: FilterGate?

    var needsRequestContent: Bool { filter?.needsRequestContent ?? false }

    func admits(_ request: HttpRequest, in exchange: Exchange) -> Bool {
        (rule.isInForce(at: exchange.wallNow) || exchange.rules.contains(rule.id))
            && filter?.admits(request, in: exchange) ?? true
    }

    func admits(_ response: HttpResponse, in exchange: Exchange) -> Bool {
        (rule.isInForce(at: exchange.wallNow) || exchange.rules.contains(rule.id))
            && filter?.admits(response, in: exchange) ?? true
    }
}
