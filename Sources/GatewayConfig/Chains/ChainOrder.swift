import HttpWare

/// Compares the order of the wares in a chain with the one in which they belong, as they declare it.
///
/// Wares that declare no place can stand anywhere. Two entries that both have an `if` may apply to different requests, and
/// are not compared with each other.
struct ChainOrder {
    private struct Entry {
        let name: String
        let place: ChainPlace?
        let risks: [OrderRisk]
        let entry: ChainEntry

        init?(_ entry: ChainEntry, isPostware: Bool) {
            guard let type = type(of: entry.ware) as? any ConfigurableWare.Type else { return nil }
            name = type.name.text
            // The place of a ware for both sides is among the postwares.
            place = !isPostware && entry.ware is any EitherSided ? nil : type.chainPlace
            risks = type.orderRisks
            self.entry = entry
        }

        /// Whether it is a risk to stand before the other entry.
        func hasRisk(before other: Entry) -> Bool {
            risks.contains { risk in other.place.map(risk.places.contains) ?? false }
        }
    }

    private(set) var diagnostics = Diagnostics()
    private var seen: Set<ObjectIdentifier> = []
    /// The warnings so far: each is given once, even if its entry is joined into several chains.
    private var told: Set<Told> = []

    private struct Told: Hashable {
        let place: SourceLocation
        /// The number of the risk among those of the ware; `nil` for the order as such.
        let risk: Int?
    }

    /// Judges a joined chain, each once.
    mutating func check(_ chain: WareChain) {
        guard seen.insert(ObjectIdentifier(chain)).inserted else { return }
        check(chain.entries.middlewares.compactMap { Entry($0, isPostware: false) })
        check(chain.entries.postwares.compactMap { Entry($0, isPostware: true) })
    }

    private mutating func check(_ entries: [Entry]) {
        for (index, entry) in entries.enumerated() {
            for (number, risk) in entry.risks.enumerated() {
                let mark = Told(place: entry.entry.location, risk: number)
                guard !told.contains(mark),
                    let other = entries[(index + 1)...].first(where: {
                        $0.place.map(risk.places.contains) ?? false && !Self.areBothConditional(entry, $0)
                    }),
                    !risk.isAvertedByGuard || !entries[..<index].contains(where: { $0.entry.ware is any AccessGuard })
                else { continue }
                told.insert(mark)
                let unguarded = risk.isAvertedByGuard ? ", with no authentication before it" : ""
                diagnostics.warning(
                    at: entry.entry.location, entry.entry.label,
                    "stands before \(other.entry.label), at \(other.entry.location)\(unguarded): \(risk.consequence)")
            }
        }
        checkPlaces(entries.filter { $0.place != nil })
    }

    private static func areBothConditional(_ one: Entry, _ other: Entry) -> Bool {
        one.entry.condition != nil && other.entry.condition != nil
    }

    /// Tells of the fewest entries that would have to move.
    private mutating func checkPlaces(_ entries: [Entry]) {
        let places = entries.map { $0.place?.rawValue ?? 0 }
        let kept = Self.longestAscent(places)
        for index in entries.indices where !kept.contains(index) {
            let entry = entries[index]
            if told.contains(Told(place: entry.entry.location, risk: nil)) { continue }
            let isJudged = { (first: Entry, second: Entry) in
                Self.areBothConditional(first, second) || first.hasRisk(before: second)
            }
            let earlier = kept.filter { $0 < index && places[$0] > places[index] }.min()
            let later = kept.filter { $0 > index && places[$0] < places[index] }.max()
            if let earlier, !isJudged(entries[earlier], entry) {
                tell(entry, "stands after", entries[earlier], "before")
            } else if let later, !isJudged(entry, entries[later]) {
                tell(entry, "stands before", entries[later], "after")
            }
        }
    }

    private mutating func tell(_ entry: Entry, _ stands: String, _ other: Entry, _ belongs: String) {
        told.insert(Told(place: entry.entry.location, risk: nil))
        diagnostics.warning(
            at: entry.entry.location, entry.entry.label,
            "\(stands) \(other.entry.label), at \(other.entry.location); \(entry.name) belongs \(belongs) \(other.name)"
        )
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
