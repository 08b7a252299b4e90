/// How a request stands with the rate limits of its chain, from their request halves to their response halves.
struct RateStandings {
    /// How it stands with one of them.
    struct Standing {
        /// So many more requests may come now.
        let left: Int32
        /// After so many seconds all of them may.
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
