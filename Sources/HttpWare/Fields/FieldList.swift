/// Comma-separated lists in field values. RFC 9110 §5.6.1.
enum FieldList {
    /// The members, without surrounding white space and without empty ones. Commas in quoted strings do not separate.
    static func members(of value: some StringProtocol) -> [String] {
        var members: [String] = []
        var member: [UInt8] = []
        var isQuoted = false
        var isEscaped = false
        for byte in value.utf8 {
            if isQuoted {
                member.append(byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == 0x5c {
                    isEscaped = true
                } else if byte == 0x22 {
                    isQuoted = false
                }
            } else if byte == 0x2c {
                add(&member, to: &members)
            } else {
                isQuoted = byte == 0x22
                member.append(byte)
            }
        }
        add(&member, to: &members)
        return members
    }

    /// Calls `body` with the range of each member of a list of tokens: no quoted strings, as in `Connection`.
    @inline(__always)
    static func forEachToken(_ value: UnsafeBufferPointer<UInt8>, _ body: (Range<Int>) -> Void) {
        var start = 0
        while start < value.count {
            var end = start
            while end < value.count, value[end] != 0x2c { end &+= 1 }
            var first = start
            var last = end
            while first < last, isSpace(value[first]) { first &+= 1 }
            while last > first, isSpace(value[last &- 1]) { last &-= 1 }
            if last > first { body(first..<last) }
            start = end &+ 1
        }
    }

    @inline(__always)
    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func add(_ member: inout [UInt8], to members: inout [String]) {
        let trimmed = member.drop { isSpace($0) }.reversed().drop { isSpace($0) }.reversed()
        if !trimmed.isEmpty { members.append(String(decoding: Array(trimmed), as: UTF8.self)) }
        member.removeAll(keepingCapacity: true)
    }
}
