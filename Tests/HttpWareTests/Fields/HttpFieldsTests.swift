import Testing

@testable import HttpWare

/// RFC 9110 §5: field lines.
@Suite struct HttpFieldsTests {
    private func received(_ lines: String) -> HttpFields {
        Feeding.request(Wire("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")).request.fields
    }

    private func lines(_ fields: HttpFields) -> [String] { fields.map { "\($0.name): \($0.value)" } }

    @Test func `lines of one name are joined in order`() {
        // RFC 9110 §5.3.
        let fields = received("X-A: 1\r\nx-b: 2\r\nx-a:3\r\n")
        #expect(fields["X-A"] == "1, 3")
        #expect(fields.values(of: "x-A") == ["1", "3"])
        #expect(fields["x-c"] == nil)
        #expect(fields.count == 4 && !fields.isEmpty)
        #expect(fields.contains("X-B") && !fields.contains("X-C"))
    }

    @Test func `packed lines are passed one by one as they were`() throws {
        var fields = received("X-A: 1\r\nx-empty:\r\nAccept:  a \r\nx-long: \(String(repeating: "v", count: 300))\r\n")
        try fields.set("X-A", to: "changed")
        for wanted in [fields, fields.received, HttpFields()] {
            var packed: [UInt8] = [1, 2, 3]
            #expect(wanted.appendPacked(to: &packed))
            var found: [String] = []
            packed.withUnsafeBytes { bytes in
                HttpFields.forEachLine(packed: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(3))) { name, value in
                    found.append(String(decoding: name, as: UTF8.self) + ": " + String(decoding: value, as: UTF8.self))
                }
            }
            #expect(found == lines(wanted))
            #expect(wanted.withFirstValue(of: .accept) { $0.count } == wanted[.accept]?.utf8.count)
        }
        var (packed, again): ([UInt8], [UInt8]) = ([], [])
        #expect(fields.appendPackedReceived(to: &packed) && fields.received.appendPacked(to: &again))
        #expect(packed == again)
    }

    @Test func `setting replaces all lines by one at the end`() throws {
        var fields = received("Accept: a\r\nX: y\r\naccept: b\r\n")
        try fields.set(.accept, to: "c")
        #expect(lines(fields) == ["Host: a", "X: y", "Accept: c"])
        fields.set(try FieldLine("X", "z"))
        #expect(lines(fields) == ["Host: a", "Accept: c", "X: z"])
    }

    @Test func `appending keeps what is there`() throws {
        var fields = received("X: y\r\n")
        try fields.append("x", "z")
        fields.append(try FieldLine(.cookie, "c"))
        #expect(lines(fields) == ["Host: a", "X: y", "x: z", "Cookie: c"])
        #expect(fields["X"] == "y, z")
    }

    @Test func `removing answers whether there was one`() throws {
        var fields = received("X: y\r\nX: z\r\nAccept: a\r\n")
        let answers = [
            fields.remove("x"), fields.remove("x"), fields.remove(FieldName.accept), fields.remove(FieldName.cookie),
        ]
        #expect(answers == [true, false, true, false])
        #expect(lines(fields) == ["Host: a"])
        try fields.append("X", "again")
        #expect(fields["x"] == "again")
    }

    @Test(arguments: ["X_User_Id", "x_user-id", "X-USER_ID"])
    func `removing or replacing a field takes away its twins that were received`(twin: String) throws {
        var fields = received("\(twin): evil\r\nX-User-Id: me\r\nX-User-Idx: 1\r\nX_UserxId: 2\r\n")
        let rest = ["X-User-Idx: 1", "X_UserxId: 2"]
        let wasThere = fields.remove("x-user-id")
        #expect(wasThere)
        #expect(lines(fields) == ["Host: a"] + rest)
        fields = received("\(twin): evil\r\nX-User-Idx: 1\r\nX_UserxId: 2\r\n")
        let wasAbsent = !fields.remove("X-User-Id")
        #expect(wasAbsent)
        #expect(lines(fields) == ["Host: a"] + rest)
        fields = received("\(twin): evil\r\nX-User-Idx: 1\r\nX_UserxId: 2\r\n")
        try fields.set("X-User-Id", to: "ada")
        #expect(lines(fields) == ["Host: a"] + rest + ["X-User-Id: ada"])
        fields = received("\(twin): evil\r\nX-User-Idx: 1\r\nX_UserxId: 2\r\n")
        fields.set(FieldBlock([try FieldLine("X-User-Id", "ada"), try FieldLine("X-B", "1")]))
        #expect(lines(fields) == ["Host: a"] + rest + ["X-User-Id: ada", "X-B: 1"])
        fields = received("\(twin): evil\r\nX-Old: ada\r\n")
        fields.rename("X-Old", to: "X-User-Id")
        #expect(lines(fields) == ["Host: a", "X-User-Id: ada"])
        fields = received("\(twin): evil\r\nX-User-Id: me\r\n")
        fields.removeTwins(of: "X-User-Id")
        #expect(lines(fields) == ["Host: a", "X-User-Id: me"])
        #expect(lines(fields.received) == ["Host: a", "\(twin): evil", "X-User-Id: me"])
    }

    @Test func `a name with an underscore has twins too, which may be known fields`() throws {
        var fields = received("User-Agent: evil\r\nX-User: evil\r\nUser_Agent: x\r\n")
        try fields.set("User_Agent", to: "a")
        try fields.set("X_User", to: "b")
        #expect(lines(fields) == ["Host: a", "User_Agent: a", "X_User: b"])
        // Fields that wares add stay, whatever they look like.
        try fields.set("X-User", to: "c")
        #expect(fields["X_User"] == "b" && fields["X-User"] == "c")
    }

    @Test func `a field that was accepted is gone, and keys still find it`() throws {
        var fields = received("Authorization: a\r\nCookie: s=1; t=2\r\n")
        fields.removeAccepted(.authorization)
        fields.removeAcceptedCookie("s")
        #expect(lines(fields) == ["Host: a", "Cookie: t=2"])
        func key(_ name: FieldName) -> [UInt8]? {
            if case .one(let value) = fields.withOnlyOrAcceptedValue(of: name, { Array($0) }) { value } else { nil }
        }
        func cookie(_ name: String) -> [UInt8]? {
            if case .one(let value) = fields.withOnlyOrAcceptedCookie(name, { Array($0) }) { value } else { nil }
        }
        #expect(key(.authorization) == Array("a".utf8) && key("X") == nil)
        #expect(cookie("s") == Array("1".utf8) && cookie("t") == Array("2".utf8))
        fields.remove(FieldName.cookie)
        #expect(cookie("s") == Array("1".utf8) && cookie("t") == nil)
        try fields.set(.authorization, to: "b")
        #expect(key(.authorization) == Array("b".utf8))
        #expect(lines(fields.received) == ["Host: a", "Authorization: a", "Cookie: s=1; t=2"])
        #expect(fields.received.lastAccepted(.authorization) == nil)
    }

    @Test func `received fields stay readable after changes`() throws {
        var fields = received("Authorization: secret\r\nX: y\r\nConnection: X-Hop\r\nX-Hop: z\r\n")
        fields.remove(FieldName.authorization)
        try fields.set("X", to: "other")
        #expect(lines(fields) == ["Host: a", "X: other"])
        #expect(lines(fields.received) == ["Host: a", "Authorization: secret", "X: y"])
        #expect(fields.received.received.count == 3)
        #expect(HttpFields().received.isEmpty)
    }

    @Test func `fields made here were not received`() throws {
        var fields: HttpFields = ["X": "y", "Accept": "z"]
        try fields.append("Z", "")
        #expect(lines(fields) == ["X: y", "Accept: z", "Z: "])
        #expect(fields.received.isEmpty)
    }

    @Test func `a line gets another name in place of the lines that had it`() {
        var fields = received("X-A: 1\r\nX-B: 2\r\nx-a: 3\r\nCookie: c\r\n")
        fields.rename("X-A", to: "x-b")
        fields.rename("Cookie", to: "X-Cookie")
        fields.rename("X-None", to: "X-Cookie")
        fields.rename("X-Cookie", to: "x-cookie")
        #expect(lines(fields) == ["Host: a", "x-b: 1", "x-b: 3", "X-Cookie: c"])
        #expect(lines(fields.received) == ["Host: a", "X-A: 1", "X-B: 2", "x-a: 3", "Cookie: c"])
    }

    @Test func `a block of lines replaces all lines of its names`() throws {
        let block = FieldBlock([try FieldLine("X-A", "new"), try FieldLine(.accept, "x"), try FieldLine("x-a", "more")])
        var fields = received("X-A: 1\r\nAccept: a\r\nX-B: 2\r\nx-a: 3\r\n")
        fields.set(block)
        fields.set(FieldBlock([]))
        #expect(lines(fields) == ["Host: a", "X-B: 2", "X-A: new", "Accept: x", "x-a: more"])
        #expect(fields["x-a"] == "new, more" && fields[.accept] == "x")
        #expect(
            Feeding.text(Feeding.encode { $0.write(fields, skipping: 0) }).hasSuffix(
                "X-A: new\r\nAccept: x\r\nx-a: more\r\n"))
    }

    @Test func `a received value is given as bytes, whatever was changed since`() {
        var fields = received("X-A: 1\r\nx-a: 2\r\nConnection: X-Hop\r\nX-Hop: z\r\n")
        fields.remove("X-A")
        var seen: [String] = []
        for name in ["x-A", "X-Hop", "X-None", "Cookie"] as [FieldName] {
            fields.withReceivedValue(of: name) { seen.append(String(decoding: $0, as: UTF8.self)) }
        }
        #expect(seen == ["1"])
    }

    @Test func `emptied fields are empty`() {
        var fields = received("X: y\r\n")
        fields.reset()
        #expect(fields.isEmpty && fields.count == 0 && fields["X"] == nil && fields.received.isEmpty)
    }

    @Test(arguments: ["a\r\nX: y", "a\nb", "a\rb", "a\u{0}", "\u{7f}", " a", "a ", "\ta", "a\t", "\u{1b}[0m"])
    func `a value that could end its line is refused`(value: String) {
        // RFC 9110 §5.5.
        var fields = HttpFields()
        #expect(throws: InvalidFieldValue.self) { try fields.set("X", to: value) }
        #expect(throws: InvalidFieldValue.self) { try fields.append("X", value) }
        #expect(throws: InvalidFieldValue.self) { try FieldLine("X", value) }
        #expect(fields.isEmpty)
    }

    @Test func `a refused value leaves the old one`() {
        var fields: HttpFields = ["X": "y"]
        #expect(throws: InvalidFieldValue.self) { try fields.set("X", to: "\n") }
        #expect(fields["X"] == "y")
    }

    @Test func `a prepared line knows its name and value`() throws {
        let line = try FieldLine("X-A", "a: \u{e9}")
        #expect(line.name == "x-a" && line.value == "a: \u{e9}")
        #expect(Feeding.text(line.wire) == "X-A: a: \u{e9}\r\n")
    }

    @Test(arguments: [
        ("a", ["a"]), ("a,b", ["a", "b"]), (" a , b\t,", ["a", "b"]), (",,", []), ("", []), ("a b", ["a b"]),
        ("\"a,b\", c", ["\"a,b\"", "c"]), ("\"a\\\",b\",c", ["\"a\\\",b\"", "c"]),
        ("x=\"a,b\";q=1,c", ["x=\"a,b\";q=1", "c"]),
        ("\"a, b", ["\"a, b"]), ("\"\\", ["\"\\"]),
    ])
    func `members of a list are between commas that are not quoted`(value: String, members: [String]) {
        // RFC 9110 §5.6.1, §5.6.4.
        #expect(FieldList.members(of: value) == members)
        #expect(received("X: \(value)\r\nX: z\r\n").listMembers(of: "x") == members + ["z"])
    }

    @Test func `members of many lines cost linear time`() {
        var fields = HttpFields()
        for _ in 0..<10_000 { try? fields.append("X", "a, b") }
        let time = processorTime {
            #expect(fields.listMembers(of: "X").count == 20_000)
            #expect(fields["X"]?.utf8.count == 10_000 * 6 - 2)
        }
        #expect(time < .seconds(2))
    }

    @Test func `lines are given as bytes`() {
        var seen: [String] = []
        received("X: y\r\nConnection: z\r\n").forEachLine { name, value in
            seen.append(String(decoding: name, as: UTF8.self) + "=" + String(decoding: value, as: UTF8.self))
        }
        #expect(seen == ["Host=a", "X=y"])
    }

    @Test(arguments: 1...30)
    func `changes at random do what an array of lines would`(seed: UInt64) throws {
        var random = Seeded(seed)
        let names: [FieldName] = ["X-A", "x-b", "Accept", "cookie", "X-Longer-Name"]
        var model = [("Host", "a"), ("Accept", "1"), ("x-b", "2")]
        var fields = received("Accept: 1\r\nx-b:2\r\n")
        for step in 0..<40 {
            let name = names.randomElement(using: &random) ?? "X-A"
            let isSame: ((String, String)) -> Bool = { $0.0.lowercased() == name.lowercased }
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                try fields.append(name, "\(step)")
                model.append((name.text, "\(step)"))
            case 1:
                try fields.set(name, to: "\(step)")
                model.removeAll(where: isSame)
                model.append((name.text, "\(step)"))
            case 2:
                let wasThere = fields.remove(name)
                #expect(wasThere == model.contains(where: isSame))
                model.removeAll(where: isSame)
            default:
                #expect(fields.values(of: name) == model.filter(isSame).map(\.1))
            }
            #expect(lines(fields) == model.map { "\($0.0): \($0.1)" })
            #expect(
                Feeding.text(Feeding.encode { $0.write(fields, skipping: 0) })
                    == model.map { "\($0.0): \($0.1)\r\n" }.joined())
        }
        #expect(lines(fields.received) == ["Host: a", "Accept: 1", "x-b: 2"])
    }

    @Test func `a value is written in place, of text, numbers and tokens`() {
        var fields: HttpFields = ["Age": "7", "X-A": "1"]
        fields.set(.age, to: 3600)
        fields.append(.cacheStatus) {
            $0.write("httpware; ttl=")
            $0.write(-12)
            $0.write("; n=")
            $0.write(Int.max)
            $0.write(token: "a b\r\nc:")
        }
        fields.append("X-Least") { $0.write(Int.min) }
        #expect(fields.values(of: .age) == ["3600"])
        #expect(fields[.cacheStatus] == "httpware; ttl=-12; n=9223372036854775807abc")
        #expect(fields["X-Least"] == "-9223372036854775808")
        #expect(fields.map(\.name) == ["X-A", "Age", "Cache-Status", "X-Least"])
    }

    @Test func `a value of any length is written whole`() {
        var fields = HttpFields()
        let token = String(repeating: "abcdefg", count: 100)
        fields.append("X-Long") {
            $0.write(token: token)
            $0.write(1)
        }
        #expect(fields["X-Long"] == token + "1")
    }

    @Test(arguments: [0, 9, 10, 99, 100, 1_234_567_890, -1, .max, .min])
    func `a number is written in decimal digits, in the room that is left and beyond`(number: Int) {
        for filler in [0, 107, 108, 109, 127, 128, 129] {
            var fields = HttpFields()
            let before = String(repeating: "a", count: filler)
            fields.append("X-Number") {
                $0.write(token: before)
                $0.write(number)
                $0.write(" of \"all\"")
            }
            #expect(fields["X-Number"] == before + "\(number) of \"all\"")
        }
        var fields: HttpFields = ["X-Number": "before"]
        fields.set("X-Number", to: number)
        #expect(fields.values(of: "X-Number") == ["\(number)"])
    }

    @Test func `one look says that none of several fields is there`() throws {
        let some = KnownFields(.range, .ifMatch)
        var fields: HttpFields = ["Accept": "*/*", "X-A": "1"]
        #expect(!fields.mayContain(some))
        try fields.set(.range, to: "bytes=0-1")
        #expect(fields.mayContain(some))
        #expect(fields.mayContain(KnownFields("X-Any")), "an unknown name may always be there, once one is")
    }
}
