extension HttpFields {
    /// The values of the lines that the peer sent under this name or a twin of it (with `_` for `-`) and that no ware has removed,
    /// as bytes, in order.
    ///
    /// A line that a ware set is not among them.
    public func standingValues(of name: FieldName) -> [[UInt8]] {
        guard hasUnderscores || contains(name) else { return [] }
        return lines.prefix(receivedCount).filter { !$0.isRemoved && isSame($0, name) }.map { Array(bytes[$0.value]) }
    }

    /// Whether the peer may have sent a name with `_`, which some servers read as `-`; false is certain.
    public var mayHaveTwins: Bool { hasUnderscores }

    /// Whether the line's name is this one, or a twin of it.
    private func isSame(_ line: Line, _ name: FieldName) -> Bool {
        guard Int(line.nameCount) == name.text.utf8.count else { return false }
        return zip(bytes[line.name], name.text.utf8).allSatisfy { own, byte in
            ByteClass.lower(own) == ByteClass.lower(byte) || own == 0x5f && byte == 0x2d
        }
    }
}
