import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct BoundAuthorityTests {
    /// Puts a token into requests for the place that they go to.
    private struct Binding: Middleware {
        var bindsAuthority: Bool { true }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
            try request.fields.set(.authorization, to: "Bearer secret")
            exchange.bindAuthority(of: request)
            return .pass
        }
    }

    private func changing(_ change: @escaping @Sendable (inout HttpRequest) throws -> Void) -> OnRequest {
        OnRequest { request, _ in
            try change(&request)
            return .pass
        }
    }

    private func toOther() -> OnRequest {
        changing { request in
            guard let authority = Authority("other.test") else { return }
            request.setAuthority(authority)
        }
    }

    private func stage(_ wares: [any Ware], isPassthrough: Bool = true) throws -> DriverStage {
        try DriverStage(.of(wares), isPassthrough: isPassthrough)
    }

    @Test func `a request whose host changes behind a token is refused, and both wares are named`() async throws {
        let stage = try stage([Binding(), OnRequest { _, _ in .pass }, toOther()])
        await stage.begin()
        await stage.step { stage in
            #expect(stage.origin.streams.isEmpty)
            #expect(stage.client.status == 500)
            #expect(stage.client.response?.fields["Proxy-Status"]?.contains("proxy_configuration_error") == true)
            let reason = stage.driver.exchange.failure?.reason ?? ""
            #expect(
                reason == "2 sends the request to another place than http://example.test, for which 0 has put a token"
                    + " into it; put 2 before 0")
        }
    }

    @Test(arguments: ["http://example.test:8080/", "https://example.test/", "http://EXAMPLE.org/"])
    func `another port, another scheme, and another message count as well`(target: String) async throws {
        let stage = try stage([
            Binding(),
            changing { request in request = try HttpRequest(.get, target, fields: request.fields) },
        ])
        await stage.begin()
        await stage.step { stage in
            #expect(stage.origin.streams.isEmpty)
            #expect(stage.driver.exchange.failure?.fault == .misconfigured)
        }
    }

    @Test func `a ware that waits, or that fails open, does not get past`() async throws {
        struct Trouble: Error {}
        let waiting = OnRequest { _, _ in
            .wait { request, _ in
                if let authority = Authority("other.test") { request.setAuthority(authority) }
                return .pass
            }
        }
        let failing = OnRequest(failsOpen: true) { request, _ in
            if let authority = Authority("other.test") { request.setAuthority(authority) }
            throw Trouble()
        }
        for ware in [waiting, failing] {
            let stage = try stage([Binding(), ware])
            await stage.begin()
            await stage.step { stage in
                #expect(stage.origin.streams.isEmpty)
                #expect(stage.driver.exchange.failure?.fault == .misconfigured)
            }
        }
    }

    @Test func `the same host in other words, another path and another query pass`() async throws {
        let stage = try stage([
            Binding(),
            changing { request in
                if let authority = Authority("Example.TEST:80") { request.setAuthority(authority) }
                try request.setPath("/b")
                try request.setQuery("c=d")
            },
        ])
        await stage.begin()
        await stage.step { stage in
            #expect(stage.stream.endpoint.name == "example.test:80")
            #expect(stage.stream.request?.upstreamTarget == "/b?c=d")
        }
    }

    @Test func `a host that changes before the token, or without one, passes`() async throws {
        for wares in [[toOther(), Binding()], [OnRequest { _, _ in .pass }, toOther()]] as [[any Ware]] {
            let stage = try stage(wares)
            await stage.begin()
            await stage.step { #expect($0.stream.endpoint.name == "other.test:80") }
        }
    }

    @Test func `the endpoints of a service are one place, whatever the host`() async throws {
        let stage = try stage([Binding(), toOther()], isPassthrough: false)
        await stage.begin()
        await stage.step { #expect($0.stream.request?.host == "other.test") }
    }

    @Test func `a replay from further out may go elsewhere, and gets a token for that place`() async throws {
        let tries = Notes()
        let again = OnBoth(
            mayReplay: true, back: { response, _ in response.status == .unauthorized ? .replay(after: .zero) : .pass })
        let moving = changing { request in
            tries.add("try")
            if tries.all.count > 1, let authority = Authority("other.test") { request.setAuthority(authority) }
        }
        let stage = try stage([again, moving, Binding()])
        await stage.begin()
        await stage.step { $0.stream.respond(.unauthorized) }
        await stage.step { #expect($0.stream.endpoint.name == "other.test:80") }
    }

    @Test func `a ware that binds a request and then answers it leaves nothing behind for a replay`() async throws {
        struct Answering: Middleware {
            let tries: Notes
            var bindsAuthority: Bool { true }

            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                exchange.bindAuthority(of: request)
                tries.add("try")
                return tries.all.count == 1 ? .abort(with: HttpResponse(.unauthorized)) : .pass
            }
        }
        let tries = Notes()
        let again = OnBoth(
            mayReplay: true, back: { response, _ in response.status == .unauthorized ? .replay(after: .zero) : .pass })
        let stage = try stage([again, Answering(tries: tries), toOther()])
        await stage.begin()
        await stage.step { stage in
            #expect(tries.all.count == 2)
            #expect(stage.origin.streams.isEmpty)
            #expect(stage.driver.exchange.failure?.reason.contains("for which 1 has put") == true)
        }
    }

    @Test func `a replay from further in keeps the request where it is`() async throws {
        let tries = Notes()
        let again = OnBoth(
            mayReplay: true, back: { response, _ in response.status == .unauthorized ? .replay(after: .zero) : .pass })
        let moving = changing { request in
            tries.add("try")
            if tries.all.count > 1, let authority = Authority("other.test") { request.setAuthority(authority) }
        }
        let stage = try stage([Binding(), again, moving])
        await stage.begin()
        await stage.step { $0.stream.respond(.unauthorized) }
        await stage.step { stage in
            #expect(stage.origin.streams.count == 1)
            #expect(stage.driver.exchange.failure?.fault == .misconfigured)
        }
    }

    @Test func `a request that goes through another client goes where its target says, so it is refused`() async throws
    {
        let stage = try stage([Binding(), toOther()], isPassthrough: false)
        let client = HttpWareTesting.ScriptedClient()
        let status = await withCheckedContinuation { continuation in
            stage.loop.execute {
                stage.server.call(through: client)
                LocalCaller(stage.server, peer: nil).send(HttpRequest.make(.get, "http://example.test/")) {
                    continuation.resume(returning: (try? $0.get())?.status.code)
                }
            }
        }
        #expect(status == 500)
        #expect(client.requests.isEmpty)
    }

    @Test(arguments: [
        ("/b", ["Authorization", "X-Api-Key", "Accept"]),
        ("http://example.test:80/b", ["Authorization", "X-Api-Key", "Accept"]),
        ("http://example.test:81/b", ["Accept"]), ("https://example.test/b", ["Accept"]),
        ("http://other.test/b", ["Accept"]),
    ])
    func `a redirect of a side call takes no field along that may be a credential`(location: String, names: [String])
        throws
    {
        var fields = HttpFields()
        try fields.set(.authorization, to: "Bearer secret")
        try fields.set("X-Api-Key", to: "secret")
        try fields.set(.accept, to: "*/*")
        let request = try HttpRequest(.get, "http://example.test/a", fields: fields)
        let next = try #require(SideCall.follow(request, to: location))
        #expect(next.request.fields.map(\.name) == names)
        #expect(next.isElsewhere == (names.count == 1))
    }
}
