import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct RequestGuardTests {
    private let placeholder = TokenPlaceholder(bytes: Array("hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV".utf8))

    private func fields(_ lines: [String: String]) throws -> HttpFields {
        var fields = HttpFields()
        for (name, value) in lines { try fields.append(#require(FieldName(name)), value) }
        return fields
    }

    private func request(_ lines: [String: String] = [:], content: String = "") throws -> HttpRequest {
        var request = HttpRequest.make(.post, "http://a.test/")
        request.fields = try fields(lines)
        request.fields.receivedCount = lines.count
        if !content.isEmpty { request.content = .bytes(Array(content.utf8)) }
        return request
    }

    private func swaps(in places: PlaceholderSwap.Places) throws -> TokenSwaps {
        let token = Secret("secret-token")
        let swaps = TokenSwaps()
        swaps.add(PlaceholderSwap(placeholder, by: token, in: places, search: TokenSearch(token)))
        return swaps
    }

    @Test func `a request without content passes, and is sent as it is without a placeholder`() throws {
        let judge = RequestGuard(nil)
        var request = try request(["X-Key": "a"])
        guard case .passes(nil) = try judge.judge(&request, trailers: nil, isWhole: true) else {
            throw GatewayError(.gateway, .internalError, "content is searched")
        }
        #expect(judge.swaps.outgoing == nil && judge.swaps.used.isEmpty)
    }

    @Test func `a token replaces a placeholder only in the request that is sent`() throws {
        let judge = RequestGuard(try swaps(in: .headers))
        var request = try request(["X-Key": placeholder.text])
        _ = try judge.judge(&request, trailers: nil, isWhole: true)
        #expect(request.fields["X-Key"] == placeholder.text)
        #expect(judge.swaps.outgoing?.request.fields["X-Key"] == "secret-token")
        #expect(judge.swaps.used == [placeholder])
    }

    @Test(arguments: [
        ("/bot@/getMe", "/bot123:AB%2Fc/getMe"), ("/@", "/123:AB%2Fc"), ("/a/@/@?b=c", "/a/123:AB%2Fc/123:AB%2Fc?b=c"),
        ("/a%2Fb/@;c", "/a%2Fb/123:AB%2Fc;c"),
    ])
    func `a token replaces a placeholder in the path, as a part of a segment`(path: String, sent: String) throws {
        let swap = PlaceholderSwap(placeholder, by: Secret("123:AB/c"), in: .path)
        let swaps = TokenSwaps()
        swaps.add(swap)
        let judge = RequestGuard(swaps)
        var request = try HttpRequest(.get, "http://a.test" + path.replacing("@", with: placeholder.text))
        let before = request.path
        _ = try judge.judge(&request, trailers: nil, isWhole: true)
        #expect(request.path == before)
        #expect(judge.swaps.outgoing?.request.upstreamTarget == sent)
        #expect(judge.swaps.outgoing?.request.path == before)
    }

    @Test(arguments: [".headers", "encoded", "split"])
    func `a placeholder in the path is refused where it is not replaced, or is encoded`(how: String) throws {
        let swap = PlaceholderSwap(placeholder, by: Secret("token"), in: how == ".headers" ? .headers : .path)
        let text = placeholder.text
        let first = String(text.utf8.first ?? 0, radix: 16)
        let path =
            switch how {
            case "encoded": "/%\(first)\(text.dropFirst())"
            case "split": "/\(text)/%\(first)\(text.dropFirst())"
            default: "/\(text)"
            }
        var request = try HttpRequest(.get, "http://a.test" + path)
        let swaps = TokenSwaps()
        swaps.add(swap)
        #expect(throws: PlaceholderFault.self) {
            try RequestGuard(swaps).judge(&request, trailers: nil, isWhole: true)
        }
    }

    @Test func `a placeholder that is not replaced in its place refuses the request, in trailers always`() throws {
        let judge = RequestGuard(try swaps(in: .query))
        var head = try request(["X-Key": placeholder.text])
        #expect(throws: PlaceholderFault.self) { try judge.judge(&head, trailers: nil, isWhole: true) }
        var plain = try request()
        let trailers = try fields(["X-Sum": placeholder.text])
        #expect(throws: PlaceholderFault.self) { try judge.judge(&plain, trailers: trailers, isWhole: true) }
    }

    @Test func `whole content is searched before it is sent, and other content while it streams`() throws {
        let judge = RequestGuard(try swaps(in: .content))
        var whole = try request(content: "a=b")
        guard case .searches = try judge.judge(&whole, trailers: nil, isWhole: true) else {
            throw GatewayError(.gateway, .internalError, "whole content is not searched first")
        }
        var streamed = try request(content: "a=b")
        guard case .passes(.some) = try judge.judge(&streamed, trailers: nil, isWhole: false) else {
            throw GatewayError(.gateway, .internalError, "content streams past the search")
        }
    }

    @Test func `content with a coding that cannot be searched is refused`() throws {
        var request = try request(["Content-Encoding": "x-unknown"], content: "a")
        #expect(throws: GatewayError.self) { try RequestGuard(nil).judge(&request, trailers: nil, isWhole: true) }
    }

    @Test func `an upgrade to a protocol that cannot be searched is removed`() throws {
        var request = try request()
        request.upgrade = "h2c"
        _ = try RequestGuard(nil).judge(&request, trailers: nil, isWhole: true)
        #expect(request.upgrade == nil)
    }

    @Test func `the swaps of a tunnel are freed when it has ended`() throws {
        weak var kept: TokenSwaps?
        do {
            var request = try request()
            request.upgrade = "websocket"
            let judge = RequestGuard(nil)
            _ = try judge.judge(&request, trailers: nil, isWhole: true)
            #expect(judge.swaps.sentFilter != nil)
            kept = judge.swaps
            judge.swaps.endTunnel()
        }
        #expect(kept == nil)
    }

    @Test func `the reason of a refusal names the place and the credential`() {
        let fault = PlaceholderFault(placeholder, in: "the query", [])
        #expect(
            fault.reason(of: "app", isElsewhere: false, host: "a.test")
                == "the query holds the placeholder of app, which is not for a.test")
        #expect(
            fault.reason(of: "app", isElsewhere: true, host: "a.test")
                == "the query holds the placeholder of app, which is not replaced there")
        #expect(
            fault.reason(of: nil, isElsewhere: true, host: "a.test")
                == "the query holds a placeholder that is not in force here")
    }
}
