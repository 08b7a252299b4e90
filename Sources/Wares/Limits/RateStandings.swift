/// How a request stands with the rate limits of its chain, from their request halves to their response halves.
struct RateStandings {
    /// How it stands with one of them.
    struct Standing {
        /// So many more requests may come now.
        var left = 0
        /// After so many seconds all of them may.
        var seconds = 0
    }

    private struct Entry {
        var limit: ObjectIdentifier?
        var standing = Standing()
    }

    /// Those of a chain that tell; further ones limit all the same. In place, so that to remember them allocates nothing.
    private var entries = InlineArray<4, Entry>(repeating: Entry())

    /// That of the limit whose table is this; `nil` sets nothing.
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
