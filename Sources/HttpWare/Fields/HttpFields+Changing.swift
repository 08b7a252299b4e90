extension HttpFields {
    /// Gives each line of that name another value, in its place: what `change` makes of its bytes, which are valid during the call only;
    /// `nil` leaves it. Throws what `change` throws, and `InvalidFieldValue` for bytes that no field value may hold (RFC 9110 §5.5);
    /// then the lines before are changed.
    public mutating func changeValues(
        of name: FieldName, _ change: (UnsafeRawBufferPointer) throws -> [UInt8]?
    ) throws {
        var next = firstIndex(of: name)
        while let line = next {
            next = index(of: name, from: line + 1)
            let place = lines[line].value
            guard let changed = try bytes.withUnsafeBytes({ try change(.init(rebasing: $0[place])) }) else { continue }
            let isSpace = { (byte: UInt8?) in byte == 0x20 || byte == 0x09 }
            guard changed.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }), !isSpace(changed.first),
                !isSpace(changed.last)
            else { throw InvalidFieldValue(name: name) }
            setValue(changed, ofLine: line)
        }
    }
}
