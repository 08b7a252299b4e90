import Testing

@testable import HttpWare

@Suite struct StructuredFieldsTests {
    private func read(_ text: String, _ use: StructuredReader.Use) -> [(name: String, value: StructuredMember)]? {
        try? StructuredReader.dictionary(Array(text.utf8), for: use)
    }

    @Test(arguments: [StructuredReader.Use.directives, .signatures])
    func `a reader takes as much as RFC 9651 asks`(use: StructuredReader.Use) throws {
        // Byte sequences of 16,384 octets, §3.3.5.
        let octets = [UInt8](repeating: 0xa5, count: 16_384)
        let sequence = try #require(read("a=:\(Base64.encode(octets)):", use)?.first?.value)
        guard case .item(let item, _) = sequence else { throw StructuredReader.Fault() }
        #expect(item.bytes == octets)
        // Strings of 1,024 characters, §3.3.3, and tokens of 512, §3.3.4.
        #expect(read("a=\"\(String(repeating: "x", count: 1024))\"", use) != nil)
        #expect(read("a=\(String(repeating: "x", count: 512))", use) != nil)
        // 1,024 members with names of 64 characters, §3.2.
        func name(_ number: Int) -> String { String(repeating: "k", count: 60) + "\(1000 + number)" }
        let members = try #require(read((0..<1024).map { "\(name($0))=\($0)" }.joined(separator: ","), use))
        #expect(members.map(\.name) == (0..<1024).map(name))
        // 256 items of an inner list, §3.1.1, and 256 parameters, §3.1.2.
        #expect(read("a=(\((0..<256).map { "\($0)" }.joined(separator: " ")))", use) != nil)
        #expect(read("a=1" + (0..<256).map { ";p\($0)=\($0)" }.joined(), use) != nil)
    }

    @Test(arguments: [StructuredReader.Use.directives, .signatures])
    func `a reader is bounded in members, items, parameters and bytes`(use: StructuredReader.Use) {
        #expect(read((0..<1025).map { "k\($0)" }.joined(separator: ","), use) == nil)
        #expect(read("a=(\((0..<1025).map { "\($0)" }.joined(separator: " ")))", use) == nil)
        #expect(read("a=1" + (0..<257).map { ";p\($0)" }.joined(), use) == nil)
        #expect(read("a=\"\(String(repeating: "x", count: StructuredReader.mostBytes))\"", use) == nil)
    }

    @Test(arguments: [4, 40])
    func `a repeated name replaces the former in place for directives, and is refused for signatures, RFC 9651 §4.2.2`(
        others: Int
    ) throws {
        let text = "a=1," + (0..<others).map { "k\($0)" }.joined(separator: ",") + ",a=2,k0=3"
        let members = try #require(read(text, .directives))
        #expect(members.map(\.name) == ["a"] + (0..<others).map { "k\($0)" })
        guard case .item(let first, _) = members[0].value, case .item(let second, _) = members[1].value else {
            throw StructuredReader.Fault()
        }
        #expect(first.integer == 2 && second.integer == 3)
        #expect(read(text, .signatures) == nil)
    }
}
