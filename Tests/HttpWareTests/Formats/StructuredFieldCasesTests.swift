import Testing

@testable import HttpWare

/// Each field is read and written again. RFC 9651 §4.
@Suite struct StructuredFieldCasesTests {
    private static func read(item text: [UInt8]) -> String? {
        (try? StructuredReader.item(text, for: .directives)).map {
            StructuredText.text($0.item) + StructuredText.text($0.parameters)
        }
    }

    private static func read(list text: [UInt8]) -> String? {
        (try? StructuredReader.list(text, for: .directives)).map { members in
            members.map { member in
                guard case .item(let item, let parameters) = member else {
                    return StructuredText.text(member)
                }
                return StructuredText.text(item) + StructuredText.text(parameters)
            }.joined(separator: ", ")
        }
    }

    private static func read(dictionary text: [UInt8]) -> String? {
        (try? StructuredReader.dictionary(text, for: .directives)).map { members in
            members.map { member in
                let text = StructuredText.text(member.value)
                return member.name + (text.isEmpty || text.hasPrefix(";") ? text : "=" + text)
            }.joined(separator: ", ")
        }
    }

    private static func bytes(_ text: some StringProtocol) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == 0x7e, let named = Hex.byte(rest, at: rest.startIndex) {
                bytes.append(named)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    private func check(_ cases: String, least: Int, _ read: ([UInt8]) -> String?) throws {
        let lines = cases.split(separator: "\n")
        #expect(lines.count >= least)
        for line in lines {
            let arrow = try #require(line.ranges(of: " -> ").last)
            let field = Self.bytes(line[..<arrow.lowerBound].dropFirst())
            let form = line[arrow.upperBound...]
            let result = read(field)
            if form == "!" {
                #expect(result == nil, "\(line)")
            } else if form.first != "?" || result != nil {
                let canonical = form.drop { $0 == "?" }
                let expected = canonical.isEmpty || canonical == "=" ? field : Self.bytes(canonical)
                #expect(result.map { Array($0.utf8) } == expected, "\(line)")
            }
        }
    }

    @Test func `items are read and written as the working group's tests say`() throws {
        try check(StructuredFieldCases.items, least: 120, Self.read(item:))
    }

    @Test func `lists are read and written as the working group's tests say`() throws {
        try check(StructuredFieldCases.lists, least: 40, Self.read(list:))
    }

    @Test func `dictionaries are read and written as the working group's tests say`() throws {
        try check(StructuredFieldCases.dictionaries, least: 35, Self.read(dictionary:))
    }

    // MARK: Each byte in each place

    private let letters = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    private let lower = Set("abcdefghijklmnopqrstuvwxyz".utf8)
    private let digits = Set("0123456789".utf8)

    @Test
    func `a string holds printable ASCII, in which only quotes and backslashes are escaped, §3.3.3`() {
        let quote: UInt8 = 0x22
        for byte in UInt8.min...UInt8.max {
            let isEscaped = byte == quote || byte == 0x5c
            #expect(
                (Self.read(item: [quote, byte, quote]) != nil) == (0x20...0x7e ~= byte && !isEscaped),
                "\(byte)")
            #expect((Self.read(item: [quote, 0x5c, byte, quote]) != nil) == isEscaped, "\(byte)")
        }
    }

    @Test func `a token begins with a letter or an asterisk, §3.3.4`() {
        let others = letters.union(digits).union("!#$%&'*+-.^_`|~:/".utf8)
        for byte in UInt8.min...UInt8.max {
            #expect(
                (Self.read(item: [byte, 0x61]) != nil)
                    == (letters.contains(byte) || byte == 0x2a || byte == 0x20), "\(byte)")
            // A space ends the field.
            #expect(
                (Self.read(item: [0x61, byte]) != nil) == (others.contains(byte) || byte == 0x20), "\(byte)"
            )
            #expect(
                (Self.read(item: [0x61, byte, 0x61]) != nil) == others.contains(byte) || byte == 0x3b,
                "\(byte)")
        }
    }

    @Test func `a key begins with a lower-case letter or an asterisk, §3.1.2`() {
        let others = lower.union(digits).union("_-.*".utf8)
        for byte in UInt8.min...UInt8.max {
            let isFirst = lower.contains(byte) || byte == 0x2a
            #expect((Self.read(dictionary: [byte, 0x3d, 0x31]) != nil) == isFirst, "\(byte)")
            #expect((Self.read(item: [0x31, 0x3b, byte, 0x3d, 0x31]) != nil) == isFirst, "\(byte)")
            #expect(
                (Self.read(dictionary: [0x61, byte, 0x3d, 0x31]) != nil) == others.contains(byte), "\(byte)"
            )
            #expect(
                (Self.read(item: [0x31, 0x3b, 0x61, byte, 0x3d, 0x31]) != nil) == others.contains(byte),
                "\(byte)")
        }
    }

    @Test func `integers have at most 15 digits, decimals 12 and 3, §3.3.1, §3.3.2`() {
        for digit in ["0", "1", "9"] {
            for sign in ["", "-"] {
                for count in 1...20 {
                    let number = sign + String(repeating: digit, count: count)
                    let isZero = digit == "0"
                    let canonical = isZero ? "0" : number
                    #expect(
                        Self.read(item: Array(number.utf8)) == (count <= 15 ? canonical : nil), "\(number)")
                    for fraction in ["", "1", "10", "100", "123", "000", "1230"] {
                        let kept =
                            fraction == "10" || fraction == "100" ? "1" : fraction == "000" ? "0" : fraction
                        let isValid = count <= 12 && (1...3).contains(fraction.count)
                        let zero =
                            kept == "0" && isZero
                            ? "0.0" : "\(sign)\(isZero ? "0" : number.drop { $0 == "-" }).\(kept)"
                        #expect(
                            Self.read(item: Array("\(number).\(fraction)".utf8)) == (isValid ? zero : nil),
                            "\(number).\(fraction)")
                    }
                }
            }
        }
    }
}
