import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(2))) struct RewriteRequestBodyTests {
    private func exchange(_ options: ConfigNode, _ more: [any Ware] = []) throws -> TestExchange {
        try TestExchange(observing: [try TestExchange.make(RewriteRequestBody.self, options)] + more)
    }

    private static let rules: ConfigNode = [["find": "public", "replace": "internal"]]

    private func post(_ content: HttpContent, type: String = "application/json", _ fields: HttpFields = [:])
        throws -> HttpRequest
    {
        var request = HttpRequest.post("/", fields: fields, content: content)
        try request.fields.set(.contentType, to: type)
        return request
    }

    @Test(arguments: ContentCoding.allCases, [false, true])
    func `content is rewritten on its way upstream, with its coding`(coding: ContentCoding, streams: Bool) async throws
    {
        let exchange = try exchange(["rules": RewriteRequestBodyTests.rules, "stream": streams ? "true" : "false"])
        var request = try post(
            .bytes(try CodedText.encode("{\"host\":\"public\"}", coding)), ["Content-Digest": "sha-256=:AAAA:"])
        try request.fields.set(.contentEncoding, to: coding.rawValue)
        #expect(try await exchange.send(request).status == .ok)
        let sent = try #require(exchange.upstream.requests.first)
        #expect(try CodedText.decode(sent.content, sent.fields) == "{\"host\":\"internal\"}")
        #expect(sent.fields[.contentEncoding] == coding.rawValue)
        #expect(!sent.fields.contains("Content-Digest" as FieldName))
        if !streams { #expect(sent.fields[.contentLength] == "\(sent.content.bytes?.count ?? 0)") }
    }

    @Test func `content without a match, of other types, and parts go upstream as they came`() async throws {
        let exchange = try exchange(["rules": RewriteRequestBodyTests.rules])
        let digest: HttpFields = ["Content-Digest": "sha-256=:AAAA:"]
        let requests = [
            try post(.text("private"), digest), try post(.text("public"), type: "image/png", digest),
            try post(.text("public"), ["Content-Digest": "sha-256=:AAAA:", "Content-Range": "bytes 0-5/10"]),
        ]
        for request in requests { _ = try await exchange.send(request) }
        #expect(exchange.upstream.requests.map(\.content.text) == ["private", "public", "public"])
        for sent in exchange.upstream.requests { #expect(sent.fields.contains("Content-Digest" as FieldName)) }
    }

    @Test func `larger content goes upstream unchanged, or is refused with 413`() async throws {
        let large = HttpContent.text(String(repeating: "public ", count: 30_000))
        let passing = try exchange(["rules": RewriteRequestBodyTests.rules, "maxBody": "1KiB"])
        #expect(try await passing.send(try post(large)).status == .ok)
        #expect(passing.upstream.requests.first?.content.bytes == large.bytes)
        #expect(passing.notes == ["not edited: the content is larger than 1024 bytes"])
        let refusing = try exchange(["rules": RewriteRequestBodyTests.rules, "maxBody": "1KiB", "onFailure": "refuse"])
        #expect(try await refusing.send(try post(large)).status == .contentTooLarge)
        #expect(refusing.upstream.requests.isEmpty)
    }

    @Test func `content of unknown length is collected up to maxBody, and streams on when there is more`() async throws
    {
        let exchange = try exchange(["rules": RewriteRequestBodyTests.rules, "maxBody": "100KiB"])
        for (count, isRewritten) in [(10_000, true), (20_000, false)] {
            let text = String(repeating: "public ", count: count)
            var request = try post(.text(text))
            request.content.extent = .unknown
            #expect(try await exchange.send(request).status == .ok)
            let sent = exchange.upstream.requests.last?.content.text
            #expect(sent == (isRewritten ? text.replacing("public", with: "internal") : text))
        }
    }

    @Test(arguments: [("gzip", 400), ("compress", 415)])
    func `content that cannot be decoded goes upstream unchanged, or is refused`(coding: String, status: Int)
        async throws
    {
        for onFailure in ["pass", "refuse"] {
            let exchange = try exchange([
                "rules": RewriteRequestBodyTests.rules, "onFailure": ConfigNode(stringLiteral: onFailure),
            ])
            var request = try post(.text("public"))
            try request.fields.set(.contentEncoding, to: coding)
            let response = try await exchange.send(request)
            #expect(response.status.code == (onFailure == "pass" ? 200 : status))
            #expect(exchange.upstream.requests.map(\.content.text) == (onFailure == "pass" ? ["public"] : []))
        }
    }

    @Test func `content that decodes to more than maxBody is refused, and decoded no further`() async throws {
        let exchange = try exchange(["rules": RewriteRequestBodyTests.rules, "onFailure": "refuse"])
        var request = try post(.bytes(try CodedText.encode([UInt8](repeating: 0x61, count: 50 << 20), .br)))
        try request.fields.set(.contentEncoding, to: "br")
        #expect(try await exchange.send(request).status == .contentTooLarge)
    }

    @Test func `a retry sends the rewritten content once more`() async throws {
        let retry = Retry(retryOn: FailureSet([], statuses: [503]), methods: [.post], backoff: .zero ... .zero)
        let exchange = try exchange(["rules": RewriteRequestBodyTests.rules], [retry])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(try post(.text("a public b"))).status == .ok)
        #expect(exchange.upstream.requests.map(\.content.text) == ["a internal b", "a internal b"])
    }

    @Test func `a retry before the ware rewrites once each time`() async throws {
        let retry = Retry(retryOn: FailureSet([], statuses: [503]), methods: [.post], backoff: .zero ... .zero)
        let ware = try TestExchange.make(RewriteRequestBody.self, ["rules": [["find": "a", "replace": "aa"]]])
        let exchange = try TestExchange([retry, ware])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(try post(.text("-a-"))).status == .ok)
        #expect(exchange.upstream.requests.map(\.content.text) == ["-aa-", "-aa-"])
    }

    @Test func `content that streams through one rewriting is whole for the next, in their order`() async throws {
        let first = try TestExchange.make(
            RewriteRequestBody.self, ["rules": [["find": "a", "replace": "b"]], "stream": "true"])
        let second = try TestExchange.make(RewriteRequestBody.self, ["rules": [["find": "b", "replace": "cc"]]])
        let exchange = try TestExchange([first, second])
        var request = try post(.bytes(try CodedText.encode("a-b", .gzip)))
        try request.fields.set(.contentEncoding, to: "gzip")
        #expect(try await exchange.send(request).status == .ok)
        let sent = try #require(exchange.upstream.requests.first)
        #expect(try CodedText.decode(sent.content, sent.fields) == "cc-cc")
    }
}
