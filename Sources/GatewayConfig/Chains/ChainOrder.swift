import HttpWare

/// Compares the order of the wares in a chain with the order that they declare.
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
            // The place of a ware for both sides refers to postwares.
            place = !isPostware && entry.ware is any EitherSided ? nil : type.chainPlace
            risks = type.orderRisks
            self.entry = entry
        }

        /// Whether it is a risk that this entry stands before the other.
        func hasRisk(before other: Entry) -> Bool {
            risks.contains { risk in other.place.map(risk.places.contains) ?? false }
        }
    }

    private(set) var diagnostics = Diagnostics()
    private var seen: Set<ObjectIdentifier> = []
    /// The warnings so far. Each is given once, even if its entry is joined into several chains.
    private var told: Set<Told> = []

    private struct Told: Hashable {
        let place: SourceLocation
        /// The number of the risk among the risks of the ware; `nil` for a warning about the order itself.
        let risk: Int?
    }

    /// Checks a joined chain, unless it was checked before.
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

    /// Reports the smallest set of entries that would have to move.
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

    /// The indices of a longest subsequence of numbers that never decreases.
    private static func longestAscent(_ numbers: [Int]) -> Set<Int> {
        // For each length, the index of the smallest last number of a subsequence with that length.
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
    /// The name of this kind of ware in configurations.
    var configuredName: String? { (type(of: self) as? any ConfigurableWare.Type)?.name.text }
}
