import HttpWare

/// The order in which wares belong, by their names, and what goes wrong in another.
///
/// Wares that are not named may stand anywhere. Two entries that both have an `if` may be meant for different requests, and
/// are not judged against each other.
struct ChainOrder {
    private static let authentication = ["jwt", "introspect", "apiKey", "basicAuth"]
    private static let caches = ["httpCache", "notModified"]

    /// From the listener's side to the origin's.
    private static let middlewares = [
        ["requestId"], ["traceparent"], ["ipRule", "hostRule"], ["bodyLimit"], ["cors"], authentication, ["rateLimit"],
        ["concurrency"], ["offline"], caches, ["coalesce"], ["tokenRefresh"], ["tokenInject"], ["sign"], ["retry"],
        ["circuitBreaker"], ["timeout"],
    ]
    /// From the origin's side to the listener's.
    private static let postwares = [
        ["unauthorized"], ["errorPage"], ["rewriteBody", "jsonTransform"], ["compress"], ["responseHeaders"],
        ["timeLog"], ["metrics"], ["accessLog"],
    ]

    /// An order that has a consequence worth telling: one of `first` stands before one of `second`.
    private struct Rule {
        let first: Set<String>
        let second: Set<String>
        /// Follows "stands before NAME, at PLACE: ".
        let consequence: String
    }

    private static let rules = [
        Rule(
            first: Set(caches + ["offline", "coalesce"]), second: Set(authentication + ["extAuthz", "oidcLogin"]),
            consequence:
                "a response for one client reaches clients that were not authenticated; put authentication first"),
        Rule(
            first: Set(caches + ["offline", "coalesce"]), second: ["ipRule", "hostRule"],
            consequence: "stored responses reach clients that the rule would refuse; put the rule first"),
        Rule(
            first: ["tokenInject"], second: ["tokenRefresh"],
            consequence: "a request that is replayed after a refresh would carry the old token; put tokenRefresh first"),
        Rule(
            first: ["sign"], second: ["tokenRefresh", "tokenInject"],
            consequence: "the signature would not match the request that is sent; put sign after it"),
        Rule(
            first: ["circuitBreaker"], second: ["retry"],
            consequence: "it would count exchanges, not attempts; put retry first"),
        Rule(
            first: ["compress"], second: ["rewriteBody", "jsonTransform"],
            consequence: "the other ware would get compressed content; put compress after it"),
    ]

    private struct Entry {
        let name: String
        let rank: Int?
        let entry: ChainEntry
    }

    private(set) var diagnostics = Diagnostics()
    private var seen: Set<ObjectIdentifier> = []
    /// What was told already: once is enough, however many chains an entry is joined into.
    private var told: Set<Told> = []

    private struct Told: Hashable {
        let place: SourceLocation
        /// The place in `rules`; `nil` for the order as such.
        let rule: Int?
    }

    /// Judges a joined chain, each once.
    mutating func check(_ chain: WareChain) {
        guard seen.insert(ObjectIdentifier(chain)).inserted else { return }
        let before = entries(chain.entries.middlewares, Self.middlewares)
        check(before)
        check(entries(chain.entries.postwares, Self.postwares))
        checkSharedCredential(before)
    }

    private func entries(_ entries: [ChainEntry], _ order: [[String]]) -> [Entry] {
        entries.compactMap { entry in
            guard let name = entry.ware.configuredName else { return nil }
            return Entry(name: name, rank: order.firstIndex { $0.contains(name) }, entry: entry)
        }
    }

    private mutating func check(_ entries: [Entry]) {
        for (number, rule) in Self.rules.enumerated() {
            guard let end = entries.lastIndex(where: { rule.second.contains($0.name) }) else { continue }
            for index in 0..<end where rule.first.contains(entries[index].name) {
                let first = entries[index]
                let mark = Told(place: first.entry.location, rule: number)
                guard !told.contains(mark),
                    let second = entries[(index + 1)...].first(where: {
                        rule.second.contains($0.name) && !Self.areBothConditional(first, $0)
                    })
                else { continue }
                told.insert(mark)
                diagnostics.warning(
                    at: first.entry.location, first.entry.label,
                    "stands before \(second.entry.label), at \(second.entry.location): \(rule.consequence)")
            }
        }
        checkRanks(entries.filter { $0.rank != nil })
    }

    private static func areBothConditional(_ one: Entry, _ other: Entry) -> Bool {
        one.entry.condition != nil && other.entry.condition != nil
    }

    /// Tells of the fewest entries that would have to move.
    private mutating func checkRanks(_ entries: [Entry]) {
        let kept = Self.longestAscent(entries.map { $0.rank ?? 0 })
        for index in entries.indices where !kept.contains(index) {
            let entry = entries[index]
            if told.contains(Told(place: entry.entry.location, rule: nil)) { continue }
            let isJudged = { (first: Entry, second: Entry) in
                Self.areBothConditional(first, second)
                    || Self.rules.contains { $0.first.contains(first.name) && $0.second.contains(second.name) }
            }
            let rank = entry.rank ?? 0
            let earlier = kept.filter { $0 < index && (entries[$0].rank ?? 0) > rank }.min()
            let later = kept.filter { $0 > index && (entries[$0].rank ?? 0) < rank }.max()
            if let earlier, !isJudged(entries[earlier], entry) {
                tell(entry, "stands after", entries[earlier], "before")
            } else if let later, !isJudged(entry, entries[later]) {
                tell(entry, "stands before", entries[later], "after")
            }
        }
    }

    private mutating func tell(_ entry: Entry, _ stands: String, _ other: Entry, _ belongs: String) {
        told.insert(Told(place: entry.entry.location, rule: nil))
        diagnostics.warning(
            at: entry.entry.location, entry.entry.label,
            "\(stands) \(other.entry.label), at \(other.entry.location); \(entry.name) belongs \(belongs) \(other.name)"
        )
    }

    /// What is stored behind the cache belongs to the origin server, and so does what was fetched with a credential of ours.
    private mutating func checkSharedCredential(_ entries: [Entry]) {
        guard let cache = entries.firstIndex(where: { $0.name == "httpCache" }),
            let inject = entries[cache...].first(where: { $0.name == "tokenInject" }),
            !entries[..<cache].contains(where: { WareRegistry.guards.contains($0.name) }),
            !Self.areBothConditional(entries[cache], inject)
        else { return }
        diagnostics.warning(
            at: entries[cache].entry.location, entries[cache].entry.label,
            "stands before \(inject.entry.label), at \(inject.entry.location), without authentication before it: responses for"
                + " the credential are stored for all clients")
    }

    /// The places of a longest run of numbers that never fall.
    private static func longestAscent(_ numbers: [Int]) -> Set<Int> {
        // For each length, where the run of that length ends whose last number is the smallest.
        var ends: [Int] = []
        var previous: [Int?] = []
        for (index, number) in numbers.enumerated() {
            var low = 0
            var high = ends.count
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] <= number { low = middle + 1 } else { high = middle }
            }
            previous.append(low > 0 ? ends[low - 1] : nil)
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var result: Set<Int> = []
        var place = ends.last
        while let index = place {
            result.insert(index)
            place = previous[index]
        }
        return result
    }
}

extension Ware {
    /// How a configuration names wares of this kind.
    var configuredName: String? { (type(of: self) as? any ConfigurableWare.Type)?.name.text }
}
