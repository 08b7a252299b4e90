extension HttpFields {
    /// Changes the value of each line with that name in place. `change` gets the bytes, which are valid during the call only, and
    /// returns the new ones; `nil` keeps the line. Throws the errors of `change`, and `InvalidFieldValue` for invalid bytes
    /// (RFC 9110 §5.5); the lines before are then already changed.
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
