import HttpWare
import Testing

@testable import Capturing

@Suite struct RequestRepetitionTests {
    private func captured() -> CapturedExchange {
        var request = CapturedMessage(fields: [
            .init("Host", "a.test"), .init("Cookie", "…"), .init("X-Api-Key", "…"), .init("Cookie", "…"),
            .init("Accept", "*/*"), .init("Content-Encoding", "gzip"), .init("Content-Length", "4"),
        ])
        request.content.kept = Array("sent".utf8)
        request.content.size = 4
        var exchange = CapturedExchange(
            id: 1, started: WallTime(seconds: 0), method: "POST", url: "https://a.test/x;sid=…/y?token=…&b=c&key=…",
            version: "HTTP/1.1", listener: "web", request: request)
        exchange.secrets = CapturedSecrets(
            url: "https://a.test/x;sid=1/y?token=two/2?&b=c&key=three",
            request: [(1, "first"), (2, "key"), (3, "second")].map { .init(place: $0, bytes: Array($1.utf8)) },
            entry: nil)
        return exchange
    }

    private func edits(_ body: (inout RequestRepetition.Edits) -> Void) -> RequestRepetition.Edits {
        var edits = RequestRepetition.Edits()
        body(&edits)
        return edits
    }

    @Test func `without edits it is the request as the client sent it`() throws {
        let made = try RequestRepetition(captured())
        #expect(made.method == "POST" && made.url == "https://a.test/x;sid=1/y?token=two/2?&b=c&key=three")
        #expect(
            made.fields == [
                .init("Cookie", "first"), .init("X-Api-Key", "key"), .init("Cookie", "second"), .init("Accept", "*/*"),
                .init("Content-Encoding", "gzip"),
            ])
        #expect(made.content == Array("sent".utf8))
    }

    @Test(arguments: [
        ("https://a.test/x;sid=…/y?token=…", "https://a.test/x;sid=1/y?token=two/2?"),
        ("https://A.test:443/new?key=%E2%80%A6&token=…&z", "https://A.test:443/new?key=three&token=two/2?&z"),
        ("https://a.test/plain", "https://a.test/plain"),
    ])
    func `masked parts of an edited URL are put back by their names`(url: String, expected: String) throws {
        #expect(try RequestRepetition(captured(), edits { $0.url = url }).url == expected)
    }

    @Test func `an unedited URL is sent in the bytes that were received`() throws {
        let raw: [UInt8] = Array("http://a.test/l".utf8) + [0xe9] + Array("?q=".utf8) + [0xe9]
        var exchange = captured()
        exchange.url = "http://a.test/l%E9?q=%E9"
        exchange.secrets = CapturedSecrets(url: nil, target: raw, request: exchange.secrets?.request ?? [], entry: nil)
        #expect(try RequestRepetition(exchange).target == raw)
        #expect(try RequestRepetition(exchange, edits { $0.url = "http://a.test/l%E9?q=%E9" }).target == raw)
        let other = try RequestRepetition(exchange, edits { $0.url = "http://a.test/l%E9?q=1" })
        #expect(other.target == Array("http://a.test/l%E9?q=1".utf8))
        exchange.url = "http://a.test/caf\u{e9}"
        exchange.secrets = CapturedSecrets(url: nil, request: exchange.secrets?.request ?? [], entry: nil)
        #expect(try RequestRepetition(exchange).target == Array("http://a.test/caf\u{e9}".utf8))
    }

    @Test(arguments: ["http://user:pw@a.test/x", "http://…@a.test/x"])
    func `user information in a URL is not sent`(url: String) throws {
        for listener in ["web", CaptureStore.importListener] {
            var exchange = CapturedExchange(
                id: 1, started: WallTime(seconds: 0), method: "GET", url: url, version: "HTTP/1.1", listener: listener,
                request: CapturedMessage())
            exchange.isOpen = false
            #expect(try RequestRepetition(exchange).target == Array("http://a.test/x".utf8))
        }
    }

    @Test func `the case of a scheme and of a host does not matter for credentials, RFC 3986 §3.1`() throws {
        let made = try RequestRepetition(captured(), edits { $0.url = "HTTPS://A.TEST/new|" })
        #expect(made.fields.contains(.init("X-Api-Key", "key")) && made.target == Array("HTTPS://A.TEST/new|".utf8))
    }

    @Test(arguments: ["http://a.test/", "https://b.test/", "https://a.test:444/"])
    func `another scheme, host or port gets no credentials`(url: String) throws {
        for fields in [nil, Array(captured().request.fields)] {
            let made = try RequestRepetition(
                captured(),
                edits {
                    $0.url = url
                    $0.fields = fields
                })
            #expect(made.fields.allSatisfy { !["Cookie", "X-Api-Key"].contains($0.name) })
        }
        #expect(throws: RequestRepetition.Refusal.self) {
            try RequestRepetition(captured(), edits { $0.url = url + "?token=…" })
        }
    }

    @Test func `written fields take back masked values in their order, and no more often than they were`() throws {
        let made = try RequestRepetition(
            captured(), edits { $0.fields = [.init("cookie", "…"), .init("Cookie", "…"), .init("A", "b")] })
        #expect(made.fields == [.init("cookie", "first"), .init("Cookie", "second"), .init("A", "b")])
        #expect(throws: RequestRepetition.Refusal.self) {
            try RequestRepetition(captured(), edits { $0.fields = [.init("X-Api-Key", "…"), .init("X-Api-Key", "…")] })
        }
    }

    @Test func `masked values that are gone are refused, unless they are written`() throws {
        var gone = captured()
        gone.secrets = nil
        #expect(throws: RequestRepetition.Refusal.self) { try RequestRepetition(gone) }
        let fields = edits { $0.fields = [] }
        #expect(throws: RequestRepetition.Refusal.self) { try RequestRepetition(gone, fields) }
        let whole = edits {
            $0.fields = [.init("Cookie", "new")]
            $0.url = "https://a.test/"
        }
        #expect(try RequestRepetition(gone, whole).fields == [.init("Cookie", "new")])
    }

    @Test func `content is whole or written; a coding goes with the content that has it`() throws {
        var cut = captured()
        cut.request.content.size = 5
        #expect(throws: RequestRepetition.Refusal.self) { try RequestRepetition(cut) }
        let made = try RequestRepetition(cut, edits { $0.content = [1] })
        #expect(made.content == [1] && !made.fields.contains { $0.name == "Content-Encoding" })
        cut.kind = .websocket
        #expect(throws: RequestRepetition.Refusal.self) { try RequestRepetition(cut, edits { $0.content = [1] }) }
    }

    @Test func `an archive with secrets counts the missing ones`() {
        let (whole, none) = captured().restored
        #expect(none == 0 && whole.request.fields[3].value == "second" && whole.url.contains("key=three"))
        var gone = captured()
        gone.secrets = nil
        #expect(gone.restored.missing == 6)
    }
}
