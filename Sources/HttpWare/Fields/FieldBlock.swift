/// Several field lines made ahead of time, put into a message in one piece: `fields.set(block)`. It never changes.
public final class FieldBlock: Sendable {
    let wire: [UInt8]
    /// With offsets into `wire`.
    let lines: [HttpFields.Line]
    /// Each name once.
    public let names: [FieldName]
    let present: UInt64
    let others: NameFilter
    /// Whether one of the names has a `_` in it.
    let hasUnderscores: Bool

    /// Makes a block. Lines of one name stay several lines.
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
