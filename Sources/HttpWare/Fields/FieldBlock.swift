/// Several prepared field lines, added to a message together: `fields.set(block)`. Immutable.
public final class FieldBlock: Sendable {
    let wire: [UInt8]
    /// The lines, with offsets into `wire`.
    let lines: [HttpFields.Line]
    /// The names, each once.
    public let names: [FieldName]
    let present: UInt64
    let others: NameFilter
    /// Whether one of the names contains `_`.
    let hasUnderscores: Bool

    /// Makes a block. Lines with the same name stay separate lines.
    public init(_ lines: [FieldLine]) {
        var fields = HttpFields()
        for line in lines { fields.append(line) }
        var names: [FieldName] = []
        for line in lines where !names.contains(line.name) { names.append(line.name) }
        wire = fields.bytes
        self.lines = fields.lines
        present = fields.present
        others = fields.others
        self.names = names
        hasUnderscores = names.contains(where: \.hasUnderscore)
    }

    public var isEmpty: Bool { lines.isEmpty }
}
