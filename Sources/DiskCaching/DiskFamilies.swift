/// The responses of a disk store by the family of their key: keys with the same URI that other parts tell apart. An invalidation
/// of the URI takes the whole family in one step. Its responses are then no longer found, and are removed from the file
/// a few at a time.
struct DiskFamilies {
    /// The hash of the key of each response, by family and number.
    private var members: [UInt64: [UInt64: UInt64]] = [:]
    /// The responses that were invalidated, and are not removed yet.
    private var doomed: [[UInt64: UInt64]] = []

    /// A response to be removed.
    struct Doomed: Equatable {
        let number: UInt64
        let hash: UInt64
    }

    mutating func add(_ number: UInt64, hash: UInt64, to family: UInt64) {
        if family != 0 { members[family, default: [:]][number] = hash }
    }

    /// The response is no longer in the store.
    mutating func remove(_ number: UInt64, from family: UInt64) {
        guard family != 0 else { return }
        members[family]?[number] = nil
        if members[family]?.isEmpty == true { members[family] = nil }
    }

    /// Whether the response was not invalidated.
    func holds(_ number: UInt64, of family: UInt64) -> Bool { family == 0 || members[family]?[number] != nil }

    /// Invalidates all responses of a family.
    mutating func invalidate(_ family: UInt64) {
        if let all = members.removeValue(forKey: family) { doomed.append(all) }
    }

    /// At most `most` invalidated responses, which the caller removes.
    mutating func takeDoomed(most: Int) -> [Doomed] {
        var taken: [Doomed] = []
        while taken.count < most, var last = doomed.popLast() {
            while taken.count < most, let one = last.popFirst() {
                taken.append(Doomed(number: one.key, hash: one.value))
            }
            if !last.isEmpty { doomed.append(last) }
        }
        return taken
    }
}
