/// A set of any field names: a few comparisons show whether a message has none of them, and which ones it may have. The number of steps
/// depends on the unknown names of the message, not on the size of the set.
public struct FieldNameSet: Sendable {
    /// The names, in the order given.
    public let names: [FieldName]
    private let known: KnownFields
    private let knownNames: [FieldName]
    private let others: NameTraces
    /// The names with `_`, which a message may contain with `-`.
    private let underscored: [FieldName]

    /// Makes a set of these names.
    public init(_ names: [FieldName]) {
        self.names = names
        knownNames = names.filter { $0.known != .other }
        known = KnownFields(knownNames)
        others = NameTraces(names.filter { $0.known == .other })
        underscored = names.filter(\.hasUnderscore)
    }

    /// Whether a line of these fields may have one of the names; false is certain.
    func mayBe(in fields: borrowing HttpFields) -> Bool {
        fields.mayContain(known) || others.mayBe(in: fields.others)
    }

    /// The names that these fields may contain, or twins of them.
    fileprivate func candidates(in fields: borrowing HttpFields) -> [FieldName] {
        if fields.mayHaveTwins { return names }
        var found: [FieldName] = []
        if fields.mayContain(known) { found += knownNames.filter { fields.contains($0) } }
        others.add(to: &found, in: fields.others)
        for name in underscored where !found.contains(name) { found.append(name) }
        return found
    }
}

extension HttpFields {
    /// Whether there may be, or may have been, a line with one of these names; false is certain.
    public func mayContain(_ names: FieldNameSet) -> Bool { names.mayBe(in: self) }

    /// The names of the set that a line may have, also as a twin with `_` for `-` or the reverse. Messages with the same names have
    /// them in the same order, unless a name has `_`.
    public func candidates(of names: FieldNameSet) -> [FieldName] { names.candidates(in: self) }
}
