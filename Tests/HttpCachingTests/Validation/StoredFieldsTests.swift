import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct StoredFieldsTests {
    @Test func `a 304 replaces all lines of each name that it has, RFC 9111 §3.2`() {
        let stored = fields(["A: 1", "A: 2", "B: 3", "Date: x", "Age: 7"])
        let updated = StoredFields.updated(stored, by: fields(["a: 9", "C: 4", "C: 5"]))
        #expect(updated.values(of: "A") == ["9"])
        #expect(updated.values(of: "B") == ["3"])
        #expect(updated.values(of: "C") == ["4", "5"])
        #expect(!updated.contains(.age))
    }

    @Test(arguments: ["Content-Length", "Content-Encoding", "Content-Range"])
    func `fields that the stored bytes were made by stay, RFC 9111 §3.2`(name: String) {
        let updated = StoredFields.updated(fields(["\(name): 1"]), by: fields(["\(name): 2"]))
        #expect(updated.values(of: FieldName(name) ?? "X") == ["1"])
    }

    @Test(arguments: [
        "ETag", "Last-Modified", "Cache-Control", "Expires", "Content-Type", "Set-Cookie", "X-Other", "Vary",
    ])
    func `other fields are replaced, RFC 9111 §3.2`(name: String) {
        let updated = StoredFields.updated(fields(["\(name): 1"]), by: fields(["\(name): 2"]))
        #expect(updated.values(of: FieldName(name) ?? "X") == ["2"])
    }

    @Test(arguments: [
        "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Connection", "Keep-Alive", "TE",
        "Transfer-Encoding", "Upgrade", "Proxy-Connection",
    ])
    func `fields of one hop are not stored, RFC 9111 §3.1`(name: String) {
        let kept = StoredFields.kept(fields(["\(name): 1", "A: 2"]), directives: ResponseDirectives(), mode: .shared)
        #expect(kept.count == 1)
    }

    @Test func `fields that no-cache or private names are not stored, RFC 9111 §5.2.2.4 and §5.2.2.7`() {
        let all = fields(["Set-Cookie: a=1", "X-One: 1", "X-Two: 2", "X-Three: 3"])
        let directives = ResponseDirectives(["no-cache=\"set-cookie, X-One\"", "private=\"X-Two\""])
        let shared = StoredFields.kept(all, directives: directives, mode: .shared)
        #expect(shared.map(\.name) == ["X-Three"])
        let own = StoredFields.kept(all, directives: directives, mode: .private)
        #expect(own.map(\.name) == ["X-Two", "X-Three"])
    }
}
