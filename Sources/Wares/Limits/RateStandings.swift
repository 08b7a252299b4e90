/// A request's standing with the rate limits of its chain, kept from their request halves to their response halves.
struct RateStandings {
    /// The standing with one limit.
    struct Standing {
        /// The number of further requests that may come now.
        let left: Int32
        /// The seconds until the whole burst is available.
        let seconds: Int32

        init(left: Int, seconds: Int) {
            self.left = Int32(clamping: left)
            self.seconds = Int32(clamping: seconds)
        }
    }

    private struct Entry {
        var limit: ObjectIdentifier?
        var standing = Standing(left: 0, seconds: 0)
    }

    /// The limits that inform the client: at most four, stored in place so that nothing is allocated. Further limits
    /// apply, but their standing is not kept.
    private var entries = InlineArray<4, Entry>(repeating: Entry())

    /// The standing with the limit that uses this table. Setting `nil` does nothing.
    subscript(table: RateTable) -> Standing? {
        get {
            let limit = ObjectIdentifier(table)
            for index in entries.indices where entries[index].limit == limit { return entries[index].standing }
            return nil
        }
        set {
            guard let newValue else { return }
            let limit = ObjectIdentifier(table)
            for index in entries.indices where entries[index].limit == limit || entries[index].limit == nil {
                entries[index] = Entry(limit: limit, standing: newValue)
                return
            }
        }
    }
}
