import Testing

@testable import HttpWare

@Suite struct FieldBlockTests {
    private func lines(_ fields: HttpFields) -> [String] { fields.map { "\($0.name): \($0.value)" } }

    @Test func `a block replaces all lines of its names and leaves the others`() throws {
        var fields: HttpFields = ["X-A": "1", "Accept": "a", "x-a": "2", "X-B": "3"]
        let block = FieldBlock([
            try FieldLine("X-A", "new"), try FieldLine(.accept, "b"), try FieldLine("X-A", "newer"),
            try FieldLine("X-C", "c"),
        ])
        fields.set(block)
        #expect(lines(fields) == ["X-B: 3", "X-A: new", "Accept: b", "X-A: newer", "X-C: c"])
        fields.set(block)
        #expect(lines(fields) == ["X-B: 3", "X-A: new", "Accept: b", "X-A: newer", "X-C: c"])
    }

    @Test func `a block on an empty message, and an empty block, do what they say`() throws {
        var fields = HttpFields()
        fields.set(FieldBlock([]))
        #expect(fields.isEmpty)
        fields.set(FieldBlock([try FieldLine("X-A", "")]))
        #expect(lines(fields) == ["X-A: "])
        #expect(FieldBlock([]).isEmpty)
    }

    @Test func `names that share a bit of the filter are told apart`() throws {
        var fields = HttpFields()
        for number in 0..<200 { try fields.append(try #require(FieldName("X-Name-\(number)")), "\(number)") }
        for number in 0..<200 {
            let name = try #require(FieldName("x-NAME-\(number)"))
            #expect(fields.values(of: name) == ["\(number)"])
        }
        #expect(!fields.contains("X-Name-200"))
        #expect(!fields.contains("Y-Name-100"))
    }

    @Test func `renaming keeps bytes that are not UTF-8`() {
        let request = Feeding.request(
            Wire(Array("GET / HTTP/1.1\r\nHost: a\r\nX-Old: a".utf8) + [0xff] + Array("z\r\n\r\n".utf8)))
        var fields = request.request.fields
        fields.rename("x-old", to: "X-New")
        var values: [[UInt8]] = []
        fields.forEachLine { name, value in
            if name.elementsEqual("X-New".utf8) { values.append(Array(value)) }
        }
        #expect(values == [[0x61, 0xff, 0x7a]])
    }

    @Test func `received fields stay readable after any change`() throws {
        var fields = Feeding.request(Wire("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n")).request.fields
        try fields.set("X-A", to: "2")
        try fields.set("X-B", to: "3")
        var seen: [String] = []
        for name in [FieldName.host, "x-a", "X-B", "X-C"] {
            fields.withReceivedValue(of: name) { seen.append(String(decoding: $0, as: UTF8.self)) }
        }
        #expect(seen == ["a", "1"])
    }

    @Test(arguments: [0, 7, 300])
    func `the value of the last line continues with the written bytes`(count: Int) throws {
        let text = String(repeating: "x", count: count)
        let block = FieldBlock([try FieldLine("X-Policy", "\"ip\";q=5"), try FieldLine("RateLimit", "\"ip\";r=")])
        var fields: HttpFields = ["Host": "a"]
        for number in [3, 42] {
            fields.append(block) {
                $0.write(number)
                $0.write(token: text)
            }
        }
        try fields.append("X-After", "b")
        #expect(fields.values(of: "X-Policy") == ["\"ip\";q=5", "\"ip\";q=5"])
        #expect(fields.values(of: "RateLimit") == ["\"ip\";r=3\(text)", "\"ip\";r=42\(text)"])
        #expect(fields["X-After"] == "b" && fields["Host"] == "a")
        var wire: [UInt8] = []
        fields.appendWire(to: &wire)
        #expect(
            String(decoding: wire, as: UTF8.self).contains("RateLimit: \"ip\";r=42\(text)\r\nX-After: b\r\n"))
    }

    @Test func `a block of no lines adds nothing, whatever is written`() {
        var fields = HttpFields()
        fields.append(FieldBlock([])) { $0.write(1) }
        #expect(fields.isEmpty && fields.bytes.isEmpty)
    }
}
