/// A set of any field names: a few comparisons show whether a message has none of them.
public struct FieldNameSet: Sendable {
    /// The names, in the order given.
    public let names: [FieldName]
    private let known: KnownFields
    /// The traces of the names that are not known, one by one and together.
    private let traces: [NameFilter]
    private let all: NameFilter

    /// Makes a set of these names.
    public init(_ names: [FieldName]) {
        self.names = names
        known = KnownFields(names.filter { $0.known != .other })
        traces = names.filter { $0.known == .other }.map { $0.trace }
        all = traces.reduce(into: NameFilter()) { $0.add($1) }
    }

    /// Whether a line of these fields may have one of the names; false is certain.
    func mayBe(in fields: borrowing HttpFields) -> Bool {
        if fields.mayContain(known) { return true }
        guard fields.others.mayHold(all) else { return false }
        for trace in traces where fields.others.mayHold(trace) { return true }
        return false
    }
}

extension HttpFields {
    /// Whether there may be, or may have been, a line with one of these names; false is certain.
    public func mayContain(_ names: FieldNameSet) -> Bool { names.mayBe(in: self) }
}
