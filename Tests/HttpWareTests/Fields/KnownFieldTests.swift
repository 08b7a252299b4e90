import Testing

@testable import HttpWare

/// RFC 9110 §5.1: field names are compared without regard to case.
@Suite struct KnownFieldTests {
    @Test(arguments: KnownField.allCases.dropFirst())
    func `a known field identifies itself in any letter case`(field: KnownField) {
        for name in [field.name, field.name.lowercased(), field.name.uppercased()] {
            #expect(KnownField.identify(name) == field)
            #expect(FieldName(name)?.known == field)
            // Wherever it stands, near the end of the input or not.
            for (before, after) in [("", ""), ("\r\n", ": value of some length\r\n"), ("xxxxxxxxx", ":")] {
                let bytes = Array((before + name + after).utf8)
                let found = KnownField.identify(bytes.span.bytes, from: before.utf8.count, count: name.utf8.count)
                #expect(found == field)
            }
        }
    }

    @Test(arguments: KnownField.allCases.dropFirst())
    func `a name that differs in one byte is not the known field`(field: KnownField) {
        let name = Array(field.name.utf8)
        for index in name.indices {
            for byte in [0x21, 0x2d, 0x5f, 0x7e, 0x78, 0x09, 0x20, 0xc1] as [UInt8] {
                var other = name
                other[index] = byte
                guard ByteClass.lower(byte) != ByteClass.lower(name[index]) else { continue }
                #expect(KnownField.identify(other.span.bytes, from: 0, count: other.count) != field)
            }
        }
        for other in [field.name + "x", String(field.name.dropLast()), "x" + field.name] {
            #expect(KnownField.identify(other) != field)
        }
    }

    @Test func `each field has a bit of its own in one word`() {
        #expect(KnownField.allCases.allSatisfy { $0.rawValue < 64 })
        #expect(Set(KnownField.allCases.map(\.bit)).count == KnownField.allCases.count)
        #expect(KnownField.allCases.allSatisfy { $0.name.utf8.count <= KnownFieldTable.longest })
    }

    @Test(arguments: ["", "x", "X-Custom", "Proxy-Authentication-Info", String(repeating: "a", count: 1000)])
    func `other names are other`(name: String) {
        #expect(KnownField.identify(name) == .other)
    }

    @Test(arguments: ["X-Host", "x-original-url", "Forwarded"])
    func `a message with a name of a set is told from one without`(name: String) throws {
        let set = FieldNameSet([.forwarded, "X-Host", "X-Original-URL"])
        #expect(set.names.count == 3)
        var fields = HttpFields()
        try fields.append(FieldName(stringLiteral: "User-Agent"), "test")
        #expect(!fields.mayContain(set))
        try fields.append(#require(FieldName(name)), "1")
        #expect(fields.mayContain(set))
    }

    @Test func `the names of a set that share no trace with a message are certainly absent`() throws {
        var fields = HttpFields()
        for name in ["Sec-Fetch-Mode", "Sec-Fetch-Site", "DNT"] { try fields.append(#require(FieldName(name)), "1") }
        for name in ["X-Forwarded-Port", "X-Rewrite-URL"] as [FieldName] {
            #expect(!fields.mayContain(FieldNameSet([name])))
            try fields.append(name, "1")
            #expect(fields.mayContain(FieldNameSet([.host, name])))
            fields.remove(name)
        }
        #expect(!HttpFields().mayContain(FieldNameSet([])))
        #expect(HttpFields().candidates(of: FieldNameSet([])).isEmpty)
    }

    @Test func `the names that a message may have are found among many, and twins make all of them possible`() throws {
        let names = (0..<100).map { FieldName("X-Name-\($0)-Of-Many") }.compactMap(\.self) + [.forwarded, "X-Host"]
        let set = FieldNameSet(names)
        for name in names {
            var fields = HttpFields()
            try fields.append(.host, "a")
            try fields.append(name, "1")
            #expect(fields.mayContain(set) && fields.candidates(of: set).contains(name))
            #expect(fields.candidates(of: FieldNameSet([name])) == [name])
        }
        var twin = HttpFields()
        try twin.append("X_Host", "1")
        twin.hasUnderscores = true
        #expect(twin.candidates(of: set) == names)
        var plain = HttpFields()
        try plain.append("X-Host", "1")
        #expect(plain.candidates(of: FieldNameSet(["X_Host"])) == ["X_Host"])
    }
}

/// RFC 9110 §5.1, §5.6.2.
@Suite struct FieldNameTests {
    @Test(arguments: ["", " ", "a b", "a:", "a\r", "a\u{0}", "\u{e9}", "(a)", String(repeating: "a", count: 1025)])
    func `text that is not a token is not a name`(text: String) { #expect(FieldName(text) == nil) }

    @Test(arguments: ["a", "X-Custom", "!#$%&'*+-.^_`|~09azAZ", "host", String(repeating: "a", count: 1024)])
    func `names are equal in any letter case`(text: String) throws {
        let name = try #require(FieldName(text))
        let upper = try #require(FieldName(text.uppercased()))
        #expect(name == upper && name.hashValue == upper.hashValue)
        #expect(name.text == text)
        #expect(name != FieldName(text.dropLast() + "?"))
    }
}

/// The classes of bytes against the words of the grammar.
@Suite struct ByteClassTests {
    @Test func `a token is made of what RFC 9110 §5_6_2 says`() {
        let token = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min ... .max {
            #expect(ByteClass.isToken(byte) == token.contains(byte))
            for position in 0..<9 {
                var name = Array("abcDEF-09".utf8)
                name[position] = byte
                #expect(HeadScanner.isToken(name.span.bytes, from: 0, to: 9) == token.contains(byte))
                #expect(HeadScanner.isToken((name + name).span.bytes, from: 0, to: 9) == token.contains(byte))
            }
        }
    }

    @Test func `values, targets and hosts are made of what their grammars say`() {
        let host = Set("-._~!$&'()*+,;=0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        let unreserved = Set("-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min ... .max {
            #expect(ByteClass.isFieldValue(byte) == (byte == 9 || byte >= 0x20 && byte != 0x7f))
            #expect(ByteClass.isTarget(byte) == (byte > 0x20 && byte != 0x7f && byte != 0x23))
            #expect(ByteClass.isHost(byte) == host.contains(byte))
            #expect(ByteClass.isUnreserved(byte) == unreserved.contains(byte))
            #expect(
                Hex.value(byte)
                    == UInt8(
                        Character(Unicode.Scalar(byte)).isASCII
                            ? Character(Unicode.Scalar(byte)).hexDigitValue ?? 255 : 255
                    ).hexOrNil)
        }
    }

    @Test func `no control character is missed in a word`() {
        var random = Seeded(7)
        for _ in 0..<20_000 {
            let word = random.next() & random.next()
            let bytes = (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
            let found = Swar.mayHoldControls(word)
            for (index, byte) in bytes.enumerated() where byte < 0x20 || byte == 0x7f {
                #expect(found >> (index * 8 + 7) & 1 == 1)
            }
            let first = bytes.firstIndex(of: 0x3a) ?? 8
            let hit = Swar.equal(word, Swar.all(0x3a))
            #expect((hit == 0 ? 8 : hit.trailingZeroBitCount / 8) == first)
        }
    }
}

extension UInt8 {
    fileprivate var hexOrNil: UInt8? { self == 255 ? nil : self }
}
