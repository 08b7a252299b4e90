import HttpWare
import Testing

@testable import Authentication

@Suite struct KeyListTests {
    private func owner(_ list: KeyList, _ key: String) -> String? {
        Array(key.utf8).withUnsafeBytes { list.owner(of: $0)?.name }
    }

    @Test func `a key is known by its digest, in either case, between comments`() throws {
        var mistakes: [FileMistake] = []
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  // FIPS 180-4, "abc"
        let empty = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"  // of nothing
        let file = "# keys\n\nalpha:\(abc)\r\n  beta:\(empty)  \n"
        let list = KeyList(Array(file.utf8), mistakes: &mistakes)
        #expect(mistakes == [])
        #expect(list.count == 2)
        #expect(owner(list, "abc") == "alpha")
        #expect(owner(list, "") == "beta")
        #expect(owner(list, "abd") == nil)
        #expect(owner(list, "ABC") == nil)
    }

    @Test func `a comment may stand behind a key`() throws {
        var mistakes: [FileMistake] = []
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        let list = KeyList(Array("alpha:\(abc) # of the shop\nbeta:\(empty)\t#\n".utf8), mistakes: &mistakes)
        #expect(mistakes == [])
        #expect(owner(list, "abc") == "alpha")
        #expect(owner(list, "") == "beta")
    }

    @Test(arguments: [
        ("alpha", 1, 1, "name:sha256-in-hex"), (":abc", 1, 1, "name:sha256-in-hex"),
        ("# x\n a:12", 2, 4, "64 hexadecimal digits"),
        ("", 1, 1, "contains no key"), ("# nothing\n", 1, 1, "contains no key"),
        ("a\u{7}:b", 1, 1, "control characters"),
        ("\(String(repeating: "n", count: 256)):x", 1, 1, "longer than 255"),
    ])
    func `a mistake has its place`(file: String, line: Int, column: Int, text: String) throws {
        var mistakes: [FileMistake] = []
        _ = KeyList(Array(file.utf8), mistakes: &mistakes)
        let mistake = try #require(mistakes.first)
        #expect(mistakes.count == 1)
        #expect((mistake.line, mistake.column) == (line, column))
        #expect(mistake.message.contains(text), "\(mistake.message)")
    }

    @Test func `a key that stands twice is a mistake, a name is not`() {
        var mistakes: [FileMistake] = []
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let other = String(repeating: "0", count: 64)
        let list = KeyList(Array("a:\(abc)\na:\(other)\nb:\(abc)".utf8), mistakes: &mistakes)
        #expect(mistakes.map(\.line) == [3])
        #expect(list.count == 2)
    }

    @Test func `no mistake shows what stands in the file`() {
        var mistakes: [FileMistake] = []
        _ = KeyList(Array("a:SECRET\nSECRET\n".utf8), mistakes: &mistakes)
        _ = PasswordFile(Array("a:SECRET\nSECRET\nb:$2y$10$SECRET".utf8), mistakes: &mistakes)
        #expect(mistakes.count == 5)
        #expect(!mistakes.contains { $0.message.contains("SECRET") })
    }
}
