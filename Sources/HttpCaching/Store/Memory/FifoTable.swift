/// A table of items that are found by a hash, with a limit in bytes and eviction by S3-FIFO. It needs about sixty bytes for each
/// item, in addition to the item.
///
/// S3-FIFO: a new item waits in a small queue, a tenth of the room. An item that was used there more than once moves to the
/// main queue, and so does an item that comes back soon after its eviction. Items that are read once never crowd out items
/// that are read often.
///
/// All slots are in one array, and refer to each other by their index: the chain of a bucket, the two queues, and the list of
/// free slots. Inlinable, so that a store in another module gets a specialised table.
@frozen public struct FifoTable<Item> {
    /// The index of a slot, valid until its item is removed.
    public typealias Place = Int32

    @inlinable static var none: Place { -1 }

    @frozen @usableFromInline struct Slot {
        /// `nil` in a free slot.
        @usableFromInline var item: Item?
        @usableFromInline var hash: UInt64
        /// Bytes, as counted against the limit.
        @usableFromInline var size: Int
        /// The next slot of the bucket, or the next free slot.
        @usableFromInline var next: Place
        /// The neighbours in the queue.
        @usableFromInline var older: Place
        @usableFromInline var newer: Place
        /// The number of uses since it entered its queue, at most 3.
        @usableFromInline var uses: UInt8
        @usableFromInline var isMain: Bool

        @inlinable
        init(
            item: Item, hash: UInt64, size: Int, next: Place, older: Place, newer: Place, uses: UInt8, isMain: Bool
        ) {
            self.item = item
            self.hash = hash
            self.size = size
            self.next = next
            self.older = older
            self.newer = newer
            self.uses = uses
            self.isMain = isMain
        }
    }

    @frozen @usableFromInline struct Queue {
        @usableFromInline var oldest = none
        @usableFromInline var newest = none
        @usableFromInline var bytes = 0

        @inlinable init() {}
    }

    @usableFromInline var most: Int
    @usableFromInline var items = 0
    /// The number of items that were removed to make room.
    @usableFromInline var gone = 0
    @usableFromInline var slots: [Slot] = []
    @usableFromInline var free = none
    /// The first slot of each bucket; the number of buckets is a power of two.
    @usableFromInline var buckets: [Place] = Array(repeating: none, count: 16)
    @usableFromInline var small = Queue()
    @usableFromInline var main = Queue()
    /// Parts of the hashes that were recently evicted from the small queue, each at the index of its bucket. There are as many as
    /// buckets, so that each lasts about as long as an item.
    @usableFromInline var ghosts: [UInt32] = []

    @inlinable public init(limit: Int) { most = limit }

    @inlinable public var limit: Int { most }
    @inlinable public var count: Int { items }
    @inlinable public var evicted: Int { gone }
    @inlinable public var bytes: Int { small.bytes + main.bytes }

    // MARK: Reading

    /// The first item with that hash that `isPicked` accepts. Items with the same hash have the order of `insert`.
    @inline(__always)
    @inlinable public func first(_ hash: UInt64, where isPicked: (Item) -> Bool) -> Place? {
        var place = buckets[Int(truncatingIfNeeded: hash) & (buckets.count &- 1)]
        while place >= 0 {
            let index = Int(place)
            if slots[index].hash == hash, let item = slots[index].item, isPicked(item) { return place }
            place = slots[index].next
        }
        return nil
    }

    /// The item at that place.
    @inline(__always)
    @inlinable public subscript(place: Place) -> Item? { slots[Int(place)].item }

    /// Notes that the item was used.
    @inline(__always)
    @inlinable public mutating func use(_ place: Place) {
        if slots[Int(place)].uses < 3 { slots[Int(place)].uses &+= 1 }
    }

    /// Passes the items of the next `most` slots to `body`, and moves `place` after them. Items that stay in the table keep their
    /// slots between the calls. Returns false if there are no more slots.
    @inlinable public func visit(from place: inout Int, most: Int, _ body: (Item) -> Void) -> Bool {
        guard place < slots.count else { return false }
        let end = min(slots.count, place + most)
        for index in place..<end {
            if let item = slots[index].item { body(item) }
        }
        place = end
        return true
    }

    /// Passes the items with that hash to `body`, in their order.
    @inlinable public func forEach(of hash: UInt64, _ body: (Place, Item) -> Void) {
        var place = buckets[Int(truncatingIfNeeded: hash) & (buckets.count - 1)]
        while place >= 0 {
            let slot = slots[Int(place)]
            if slot.hash == hash, let item = slot.item { body(place, item) }
            place = slot.next
        }
    }

    // MARK: Changing

    /// Inserts an item before the first one of its hash for which `isBehind` is true, else after them. The limit may be
    /// exceeded until `evict` returns nothing more. Returns `nil` if there are more items than place numbers.
    @discardableResult
    @inlinable public mutating func insert(
        _ item: Item, hash: UInt64, size: Int, before isBehind: (Item) -> Bool = { _ in true }
    )
        -> Place?
    {
        guard count < Int(Place.max) - 1 else { return nil }
        if count >= buckets.count { grow() }
        let bucket = Int(truncatingIfNeeded: hash) & (buckets.count - 1)
        var slot = Slot(
            item: item, hash: hash, size: size, next: FifoTable.none, older: FifoTable.none, newer: FifoTable.none,
            uses: 0,
            isMain: isGhost(hash, bucket))
        var before = FifoTable.none
        var place = buckets[bucket]
        while place >= 0 {
            let other = slots[Int(place)]
            if other.hash == hash, let item = other.item, isBehind(item) { break }
            before = place
            place = other.next
        }
        slot.next = place
        let own = takePlace(for: slot)
        if before >= 0 { slots[Int(before)].next = own } else { buckets[bucket] = own }
        enqueue(own)
        items += 1
        return own
    }

    /// Replaces the item in a slot.
    @inlinable public mutating func replace(_ place: Place, with item: Item, size: Int) {
        let index = Int(place)
        let difference = size - slots[index].size
        if slots[index].isMain { main.bytes += difference } else { small.bytes += difference }
        slots[index].item = item
        slots[index].size = size
    }

    /// Removes an item.
    @discardableResult
    @inlinable public mutating func remove(_ place: Place) -> Item? {
        let index = Int(place)
        guard let item = slots[index].item else { return nil }
        dequeue(place)
        let bucket = Int(truncatingIfNeeded: slots[index].hash) & (buckets.count - 1)
        if buckets[bucket] == place {
            buckets[bucket] = slots[index].next
        } else {
            var before = buckets[bucket]
            while before >= 0, slots[Int(before)].next != place { before = slots[Int(before)].next }
            if before >= 0 { slots[Int(before)].next = slots[index].next }
        }
        slots[index].item = nil
        slots[index].next = free
        free = place
        items -= 1
        return item
    }

    /// Changes the limit in bytes; `evict` then enforces it.
    @inlinable public mutating func setLimit(_ limit: Int) { most = limit }

    /// Removes and returns an item; `nil` if the limit is met.
    @inlinable public mutating func evict() -> Item? {
        while bytes > limit {
            if small.bytes > limit / 10 || main.oldest < 0 {
                let place = small.oldest
                guard place >= 0 else { return nil }
                if slots[Int(place)].uses > 1 {
                    dequeue(place)
                    slots[Int(place)].isMain = true
                    enqueue(place)
                } else {
                    haunt(slots[Int(place)].hash)
                    gone += 1
                    return remove(place)
                }
            } else {
                let place = main.oldest
                let uses = slots[Int(place)].uses
                if uses > 0 {
                    dequeue(place)
                    enqueue(place)
                    slots[Int(place)].uses = uses - 1
                } else {
                    gone += 1
                    return remove(place)
                }
            }
        }
        return nil
    }

    // MARK: Slots

    @inlinable mutating func takePlace(for slot: Slot) -> Place {
        if free >= 0 {
            let place = free
            free = slots[Int(place)].next
            slots[Int(place)] = slot
            return place
        }
        // Grows by a quarter, not to the double, because unused slots take memory, too.
        if slots.count == slots.capacity { slots.reserveCapacity(max(16, slots.count + slots.count / 4)) }
        slots.append(slot)
        return Place(truncatingIfNeeded: slots.count - 1)
    }

    @inlinable mutating func grow() {
        let half = buckets.count
        var next = Array(repeating: FifoTable.none, count: half * 2)
        // Splits each chain in two by one more bit of the hash. Items with the same hash keep their order.
        for bucket in buckets.indices {
            var place = buckets[bucket]
            var last = (lower: FifoTable.none, upper: FifoTable.none)
            while place >= 0 {
                let index = Int(place)
                let isUpper = slots[index].hash & UInt64(half) != 0
                let before = isUpper ? last.upper : last.lower
                if before >= 0 {
                    slots[Int(before)].next = place
                } else {
                    next[isUpper ? bucket + half : bucket] = place
                }
                if isUpper { last.upper = place } else { last.lower = place }
                place = slots[index].next
                slots[index].next = FifoTable.none
            }
        }
        buckets = next
        ghosts = []
    }

    // MARK: Queues

    @inlinable mutating func enqueue(_ place: Place) {
        let index = Int(place)
        var queue = slots[index].isMain ? main : small
        slots[index].uses = 0
        slots[index].older = queue.newest
        slots[index].newer = FifoTable.none
        if queue.newest >= 0 { slots[Int(queue.newest)].newer = place } else { queue.oldest = place }
        queue.newest = place
        queue.bytes += slots[index].size
        if slots[index].isMain { main = queue } else { small = queue }
    }

    @inlinable mutating func dequeue(_ place: Place) {
        let index = Int(place)
        var queue = slots[index].isMain ? main : small
        let (older, newer) = (slots[index].older, slots[index].newer)
        if older >= 0 { slots[Int(older)].newer = newer } else { queue.oldest = newer }
        if newer >= 0 { slots[Int(newer)].older = older } else { queue.newest = older }
        queue.bytes -= slots[index].size
        if slots[index].isMain { main = queue } else { small = queue }
    }

    // MARK: Ghosts

    /// The mark of a hash. It is never 0, which means that there is no ghost.
    @inlinable func mark(_ hash: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 32) | 1 }

    @inlinable mutating func haunt(_ hash: UInt64) {
        if ghosts.count != buckets.count { ghosts = Array(repeating: 0, count: buckets.count) }
        ghosts[Int(truncatingIfNeeded: hash) & (buckets.count - 1)] = mark(hash)
    }

    @inlinable mutating func isGhost(_ hash: UInt64, _ bucket: Int) -> Bool {
        guard ghosts.count == buckets.count, ghosts[bucket] == mark(hash) else { return false }
        ghosts[bucket] = 0
        return true
    }
}
