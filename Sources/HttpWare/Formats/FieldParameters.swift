/// Parameters after a field value, read as lenient servers read them.
package enum FieldParameters {
    /// The value of the first parameter with that name, without quotes. RFC 9110 §5.6.6.
    package static func value(of name: String, in line: ArraySlice<UInt8>) -> [UInt8]? {
        let name = Array(name.utf8)
        var at = line.startIndex
        while let semicolon = next(0x3b, in: line, from: at) {
            at = semicolon + 1
            skipSpace(line, &at)
            guard line[at...].prefix(name.count).map(ByteClass.lower).elementsEqual(name) else { continue }
            var equals = at + name.count
            // `name*` has a value in another coding. RFC 8187.
            if equals < line.endIndex, line[equals] == 0x2a { equals += 1 }
            skipSpace(line, &equals)
            guard equals < line.endIndex, line[equals] == 0x3d else { continue }
            equals += 1
            skipSpace(line, &equals)
            return text(line, from: equals)
        }
        return nil
    }

    private static func skipSpace(_ line: ArraySlice<UInt8>, _ at: inout Int) {
        while at < line.endIndex, line[at] == 0x20 || line[at] == 0x09 { at += 1 }
    }

    /// The position of a byte outside quotes.
    private static func next(_ byte: UInt8, in line: ArraySlice<UInt8>, from start: Int) -> Int? {
        var at = start
        var isQuoted = false
        while at < line.endIndex {
            if line[at] == 0x22 {
                isQuoted.toggle()
            } else if line[at] == 0x5c, isQuoted {
                at += 1
            } else if line[at] == byte, !isQuoted {
                return at
            }
            at += 1
        }
        return nil
    }

    private static func text(_ line: ArraySlice<UInt8>, from start: Int) -> [UInt8] {
        guard start < line.endIndex, line[start] == 0x22 else {
            return Array(line[start...].prefix { $0 != 0x3b && $0 > 0x20 })
        }
        var text: [UInt8] = []
        var at = start + 1
        while at < line.endIndex, line[at] != 0x22 {
            if line[at] == 0x5c, at + 1 < line.endIndex { at += 1 }
            text.append(line[at])
            at += 1
        }
        return text
    }
}
