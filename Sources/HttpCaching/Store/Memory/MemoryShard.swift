/// A part of a memory store, with its own table of responses and its own evictions.
struct MemoryShard {
    private struct Item {
        let response: StoredResponse
        /// The properties that most responses do not need.
        let rare: Rare?

        init(_ response: StoredResponse, under key: CacheKey, _ member: KeyFamilies.Member?) {
            self.response = response
            let isHeld = response.isUnder(key)
            rare = isHeld && member == nil ? nil : Rare(key: isHeld ? nil : key, member: member)
        }

        /// The bytes that count against the limit.
        var size: Int { response.size + (rare?.size ?? 0) }

        /// Whether the response was not invalidated with the other keys of its URI.
        @inline(__always)
        var isValid: Bool { rare?.member?.isValid ?? true }

        @inline(__always)
        func isUnder(_ other: CacheKey) -> Bool {
            guard let rare else { return response.isUnder(other) }
            return rare.key.map { $0 == other } ?? response.isUnder(other)
        }
    }

    private final class Rare: Sendable {
        /// The key, if the response does not hold it.
        let key: CacheKey?
        /// The membership in the family of the key, if the key has other parts than its URI.
        let member: KeyFamilies.Member?

        init(key: CacheKey?, member: KeyFamilies.Member?) {
            self.key = key
            self.member = member
        }

        var size: Int { (member == nil ? 0 : 80) + (key.map { $0.uri.count + ($0.parts?.size ?? 0) } ?? 0) }
    }

    /// The maximum number of responses under one key. A new one replaces the oldest.
    static let mostVariants = 128

    private var table: FifoTable<Item>

    /// The size of the table when memory was last taken in advance, in bytes.
    private var provided = 0

    init(limit: Int) { table = FifoTable(limit: limit) }

    /// Whether the table has grown so far that the next responses will need memory from the system.
    mutating func takesMoreMemory() -> Bool {
        guard table.bytes > provided + HeapRoom.size / 2 else { return false }
        provided = table.bytes
        return true
    }

    var census: StoreCensus {
        var census = StoreCensus()
        census.responses = table.count
        census.bytes = table.bytes
        census.limit = table.limit
        census.evicted = table.evicted
        return census
    }

    private func hash(_ key: CacheKey) -> UInt64 { UInt64(truncatingIfNeeded: key.hashed) }

    // MARK: Reading

    mutating func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found {
        var hasOthers = false
        let place = table.first(hash(key)) { item in
            guard item.isUnder(key), item.isValid else { return false }
            hasOthers = true
            return isSelected(item.response)
        }
        guard let place, let item = table[place] else { return .none(hasOthers: hasOthers) }
        table.use(place)
        return .response(item.response)
    }

    private func place(of response: StoredResponse, _ key: CacheKey) -> FifoTable<Item>.Place? {
        table.first(hash(key)) { $0.response === response }
    }

    /// All responses under the key, the most recent first.
    func all(_ key: CacheKey) -> [StoredResponse] {
        var found: [StoredResponse] = []
        table.forEach(of: hash(key)) { _, item in
            if item.isUnder(key), item.isValid { found.append(item.response) }
        }
        return found
    }

    /// The responses in the next `most` slots, each with its key unless the response holds it; `nil` at the end.
    func next(_ place: inout Int, most: Int) -> [(key: CacheKey?, response: StoredResponse)]? {
        var batch: [(key: CacheKey?, response: StoredResponse)] = []
        let isThere = table.visit(from: &place, most: most) { item in
            if item.isValid { batch.append((item.rare?.key, item.response)) }
        }
        return isThere ? batch : nil
    }

    // MARK: Changing

    /// Stores a response, which is a member of its key's family if it has one. Returns whether there was room.
    mutating func store(_ response: StoredResponse, under key: CacheKey, _ member: KeyFamilies.Member?) -> Bool {
        let item = Item(response, under: key, member)
        guard item.size <= table.limit else { return false }
        while let place = table.first(hash(key), where: { $0.isUnder(key) && $0.response.vary == response.vary }) {
            table.remove(place)
        }
        var variants: [FifoTable<Item>.Place] = []
        table.forEach(of: hash(key)) { place, item in
            if item.isUnder(key) { variants.append(place) }
        }
        for place in variants.dropFirst(MemoryShard.mostVariants - 1) { table.remove(place) }
        // The most recent response is used first. RFC 9111 §4.1.
        let own = table.insert(item, hash: hash(key), size: item.size) { $0.response.date <= response.date }
        makeRoom()
        guard let own else { return false }
        return table[own]?.response === response
    }

    mutating func replace(_ response: StoredResponse, with head: StoredHead, under key: CacheKey) {
        guard let place = place(of: response, key), let former = table[place], former.isValid else { return }
        let update = Item(
            StoredResponse(head, content: response.content, key: key), under: key, former.rare?.member)
        table.replace(place, with: update, size: update.size)
        makeRoom()
    }

    /// Removes a response. Returns whether it was stored.
    mutating func remove(_ response: StoredResponse, under key: CacheKey) -> Bool {
        guard let place = place(of: response, key) else { return false }
        return table.remove(place)?.isValid ?? false
    }

    mutating func invalidate(_ key: CacheKey) {
        while let place = table.first(hash(key), where: { $0.isUnder(key) }) { table.remove(place) }
    }

    private mutating func makeRoom() {
        while table.evict() != nil {}
    }
}
