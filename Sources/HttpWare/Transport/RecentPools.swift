/// The pools that a loop used recently, found by the identity of their endpoint: a loop alternates between few endpoints, and the key of an
/// endpoint takes longer to hash than a request to send.
struct RecentPools {
    private struct Entry {
        let endpoint: Endpoint
        let pool: ConnectionPool
    }

    /// The number of entries, a power of two. An endpoint has one place; a later one with the same place replaces it.
    static let count = 64
    private static let shift = UInt64(64 - count.trailingZeroBitCount)

    private var entries = [Entry?](repeating: nil, count: count)

    /// The endpoint's pool; `nil` if it was not used recently.
    subscript(endpoint: Endpoint) -> ConnectionPool? {
        get {
            guard let entry = entries[RecentPools.place(of: endpoint)], entry.endpoint === endpoint else { return nil }
            return entry.pool
        }
        set { entries[RecentPools.place(of: endpoint)] = newValue.map { Entry(endpoint: endpoint, pool: $0) } }
    }

    /// Forgets a pool, for all its endpoints.
    mutating func remove(_ pool: ConnectionPool) {
        for place in entries.indices where entries[place]?.pool === pool { entries[place] = nil }
    }

    private static func place(of endpoint: Endpoint) -> Int {
        let address = UInt64(UInt(bitPattern: ObjectIdentifier(endpoint)))
        // Addresses differ in their middle bits only; the product spreads these over its highest ones.
        return Int(truncatingIfNeeded: (address &* SplitMix64.step) >> shift)
    }
}
