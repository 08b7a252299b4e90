import HttpWare

extension ConfigNode {
    /// The value without places and marks of secrets, for comparing it with another.
    ///
    /// `exactly` keeps the order of keys and the quotes, which some wares send. Otherwise, of the quotes only those of an empty
    /// text are kept, which distinguish it from nothing.
    func bare(exactly: Bool) -> ConfigNode {
        switch content {
        case .scalar(let text, let isQuoted):
            return ConfigNode(.scalar(text, isQuoted: isQuoted && (exactly || text.isEmpty)))
        case .list(let members): return ConfigNode(.list(members.map { $0.bare(exactly: exactly) }))
        case .map(let entries):
            let bare = entries.map { Entry(key: $0.key, location: .code, value: $0.value.bare(exactly: exactly)) }
            return ConfigNode(.map(exactly ? bare : bare.sorted { $0.key < $1.key }))
        }
    }
}
