internal import DequeModule
internal import HttpWare

/// A part of a memory store: its responses by key, and the queues by which they are evicted.
///
/// S3-FIFO: what is new waits in a small queue, a tenth of the room; what was used there more than once moves to the main
/// one, and so does what comes back soon after it was evicted. What is read once only never crowds out what is read often.
struct MemoryShard {
    /// A stored response and its place in a queue.
    private final class Slot {
        let key: CacheKey
        /// `nil` once it was taken away: the slot stays in its queue until its turn.
        var response: StoredResponse?
        /// Uses since it came into its queue, at most 3.
        var uses: UInt8 = 0
        var isMain = false

        init(_ key: CacheKey, _ response: StoredResponse) {
            self.key = key
            self.response = response
        }
    }

    /// The most responses under one key: the oldest gives way.
    static let mostVariants = 128

    private let limit: Int
    private var slots: [CacheKey: [Slot]] = [:]
    private var small: Deque<Slot> = []
    private var main: Deque<Slot> = []
    private var smallBytes = 0
    private var mainBytes = 0
    /// Keys that were evicted from the small queue not long ago.
    private var ghosts: Deque<Int> = []
    private var ghostSet: Set<Int> = []
    private var count = 0
    private var evicted = 0

    init(limit: Int) { self.limit = limit }

    var census: StoreCensus {
        var census = StoreCensus()
        census.responses = count
        census.bytes = smallBytes + mainBytes
        census.limit = limit
        census.evicted = evicted
        return census
    }

    // MARK: Reading

    func find(_ key: CacheKey, where isMeant: (StoredResponse) -> Bool) -> Found {
        guard let variants = slots[key] else { return .none(hasOthers: false) }
        for slot in variants {
            guard let response = slot.response, isMeant(response) else { continue }
            if slot.uses < 3 { slot.uses += 1 }
            return .response(response)
        }
        return .none(hasOthers: true)
    }

    // MARK: Changing

    mutating func store(_ response: StoredResponse, under key: CacheKey) -> Bool {
        guard response.size <= limit else { return false }
        var variants = slots[key] ?? []
        for slot in variants where slot.response?.vary == response.vary { empty(slot) }
        variants.removeAll { $0.response == nil }
        while variants.count >= MemoryShard.mostVariants, let oldest = variants.popLast() { empty(oldest) }
        let slot = Slot(key, response)
        // The most recent is asked first. RFC 9111 §4.1.
        let place = variants.firstIndex { ($0.response?.date ?? response.date) <= response.date }
        variants.insert(slot, at: place ?? variants.endIndex)
        slots[key] = variants
        count += 1
        if ghostSet.remove(key.hashed) != nil {
            slot.isMain = true
            main.append(slot)
            mainBytes += response.size
        } else {
            small.append(slot)
            smallBytes += response.size
        }
        makeRoom()
        return slot.response != nil
    }

    mutating func replace(_ response: StoredResponse, with head: StoredHead, under key: CacheKey) {
        guard let slot = slots[key]?.first(where: { $0.response === response }) else { return }
        let update = StoredResponse(head, content: response.content)
        if slot.isMain { mainBytes += update.size - response.size } else { smallBytes += update.size - response.size }
        slot.response = update
        makeRoom()
    }

    mutating func remove(_ response: StoredResponse, under key: CacheKey) {
        guard let slot = slots[key]?.first(where: { $0.response === response }) else { return }
        empty(slot)
        forget(slot)
    }

    mutating func invalidate(_ key: CacheKey) {
        for slot in slots.removeValue(forKey: key) ?? [] { empty(slot) }
    }

    /// Takes away what `isMeant` picks, and answers how many that were.
    mutating func purge(where isMeant: (CacheKey, StoredHead) -> Bool) -> Int {
        let before = count
        for (key, variants) in slots {
            for slot in variants {
                guard let response = slot.response, isMeant(key, response.head) else { continue }
                empty(slot)
                forget(slot)
            }
        }
        return before - count
    }

    /// Takes the response out of the slot; the slot stays in its queue.
    private mutating func empty(_ slot: Slot) {
        guard let response = slot.response else { return }
        slot.response = nil
        count -= 1
        if slot.isMain { mainBytes -= response.size } else { smallBytes -= response.size }
        sweep()
    }

    private mutating func forget(_ slot: Slot) {
        slots[slot.key]?.removeAll { $0 === slot }
        if slots[slot.key]?.isEmpty == true { slots[slot.key] = nil }
    }

    /// Empty slots do not pile up where nothing is evicted.
    private mutating func sweep() {
        guard small.count + main.count > 2 * count + 64 else { return }
        small.removeAll { $0.response == nil }
        main.removeAll { $0.response == nil }
    }

    // MARK: Evicting

    private mutating func makeRoom() {
        while smallBytes + mainBytes > limit {
            if smallBytes > limit / 10 || main.isEmpty { evictFromSmall() } else { evictFromMain() }
        }
    }

    private mutating func evictFromSmall() {
        guard let slot = small.popFirst(), let response = slot.response else { return }
        if slot.uses > 1 {
            smallBytes -= response.size
            mainBytes += response.size
            slot.isMain = true
            slot.uses = 0
            main.append(slot)
        } else {
            evict(slot)
            remember(slot.key.hashed)
        }
    }

    private mutating func evictFromMain() {
        guard let slot = main.popFirst(), slot.response != nil else { return }
        if slot.uses > 0 {
            slot.uses -= 1
            main.append(slot)
        } else {
            evict(slot)
        }
    }

    private mutating func evict(_ slot: Slot) {
        empty(slot)
        forget(slot)
        evicted += 1
    }

    /// As many ghosts are kept as there are responses.
    private mutating func remember(_ hash: Int) {
        if ghostSet.insert(hash).inserted { ghosts.append(hash) }
        while ghosts.count > max(64, count), let oldest = ghosts.popFirst() { ghostSet.remove(oldest) }
    }
}
