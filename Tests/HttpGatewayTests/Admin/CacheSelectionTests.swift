import HttpWare
import Testing

@testable import HttpCaching
@testable import HttpGateway

@Suite struct CacheSelectionTests {
    private static let digest = String(repeating: "0123456789abcdef", count: 4)

    private func head(_ tags: [String] = []) -> StoredHead {
        let now = WallTime(seconds: 1_800_000_000)
        return StoredHead(
            status: .ok, fields: HttpFields(),
            times: MessageTimes(requested: now, received: now, date: now, age: 0), directives: ResponseDirectives(),
            lifetime: FreshnessLifetime(seconds: 60, source: .maxAge), vary: .none, mode: .shared, tags: tags)
    }

    private func isSelected(_ key: String, _ tags: [String] = [], by selection: CacheSelection) -> Bool {
        selection.selects(CacheKey(Array(key.utf8)), head(tags))
    }

    @Test func `a key is meant as a whole, a prefix by its beginning, a tag by its name`() {
        #expect(isSelected("http://a.test/x", by: CacheSelection(key: "http://a.test/x")))
        #expect(!isSelected("http://a.test/xy", by: CacheSelection(key: "http://a.test/x")))
        #expect(isSelected("http://a.test/xy", by: CacheSelection(prefix: "http://a.test/x")))
        #expect(!isSelected("http://b.test/xy", by: CacheSelection(prefix: "http://a.test/x")))
        #expect(isSelected("http://a.test/", ["a", "b"], by: CacheSelection(tag: "b")))
        #expect(!isSelected("http://a.test/", ["ab"], by: CacheSelection(tag: "b")))
    }

    @Test func `all that is asked for has to hold`() {
        let selection = CacheSelection(prefix: "http://a.test/", tag: "t")
        #expect(isSelected("http://a.test/x", ["t"], by: selection))
        #expect(!isSelected("http://a.test/x", by: selection))
        #expect(!isSelected("http://b.test/x", ["t"], by: selection))
    }

    @Test func `a key selects all keys with its URI, and a prefix compares the URI only`() throws {
        let digest = try #require(Digest256(hex: Array(CacheSelectionTests.digest.utf8)))
        let key = CacheKey(Array("http://a.test/x".utf8), identity: digest, share: "canary")
        #expect(CacheSelection(key: "http://a.test/x").selects(key, head()))
        #expect(CacheSelection(prefix: "http://a.test/").selects(key, head()))
        #expect(!CacheSelection(prefix: "http://a.test/x\n").selects(key, head()))
        let shown = ShownKey(key)
        #expect(shown.target == "http://a.test/x")
        #expect(shown.identity == "0123456789ab")
        #expect(shown.share == "canary")
    }

    @Test func `credentials in a key are hidden, and the shown form stands for all of them`() {
        let key = "http://a.test/x?token=s3cret&a=1"
        let shown = ShownKey(CacheKey(Array(key.utf8))).target
        #expect(shown == "http://a.test/x?token=…&a=1")
        #expect(isSelected(key, by: CacheSelection(key: shown)))
        #expect(isSelected(key, by: CacheSelection(key: key)))
        #expect(isSelected(key, by: CacheSelection(prefix: "http://a.test/x?token=…&")))
        #expect(!isSelected("http://a.test/x?token=s&a=2", by: CacheSelection(key: shown)))
        #expect(CacheSelection(key: key).isPlainKey)
        #expect(!CacheSelection(key: shown).isPlainKey)
        #expect(!CacheSelection(prefix: key).isPlainKey)
    }

    @Test func `a key whose bytes are not text is shown, and selected by the shown part of its beginning`() {
        let key = CacheKey(Array("http://a.test/".utf8) + [0xff, 0xfe])
        #expect(ShownKey(key).target.hasPrefix("http://a.test/"))
        #expect(CacheSelection(prefix: "http://a.test/").selects(key, head()))
    }
}
