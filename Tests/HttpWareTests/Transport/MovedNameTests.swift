import HttpWareTesting
import Testing

@testable import HttpWare

/// Servers that move to another address while their name stays.
@Suite(.timeLimit(.minutes(10))) struct MovedNameTests {
    /// A loop with a name server, a transport that asks it, and a clock that is moved by hand. Sendable, as it is used on the loop only.
    private struct Stage: @unchecked Sendable {
        let loop: EventLoop
        let clock: ManualClock
        let names: ScriptedNameServer
        let transport: LoopTransport

        func answer(_ addresses: String..., ttl: UInt32 = 600) {
            names.replies["A app.test"] = .addresses(addresses, ttl: ttl)
            names.replies["AAAA app.test"] = .nothing
        }

        /// The number of lookups of the name.
        var lookups: Int { names.count("A app.test") }

        func pass(_ duration: Duration) {
            clock.advance(by: duration)
            loop.tick()
        }

        /// Sends a request over the pool of an endpoint; `nil` is one for `app.test`. Returns the letter of the server, or the fault.
        func get(_ port: UInt16, by endpoint: Endpoint? = nil) async throws -> String {
            let wait = LoopWait<String>()
            let call = SideCall(
                try HttpRequest(.get, "http://app.test:\(port)/"), CallLimits(timeout: .seconds(1_000_000)), transport,
                to: endpoint
            ) { result in
                switch result {
                case .success(let response): wait.resume(returning: response.content.text ?? "")
                case .failure(let error): wait.resume(returning: "\(error.fault)")
                }
            }
            transport.inEvent { call.begin() }
            return try await wait.value()
        }
    }

    private func withStage(
        _ change: @escaping @Sendable (inout Resolver.Options) -> Void = { _ in },
        _ body: @escaping @Sendable (Stage) async throws -> Void
    ) async throws {
        let clock = ManualClock()
        try await withLoop(clock: clock) { loop in
            try await loop.task {
                let server = try ScriptedNameServer(loop: loop)
                var options = Resolver.Options()
                options.servers = [server.address]
                // c-ares has a clock of its own: on a busy machine it must not ask twice.
                options.tryTimeout = .seconds(3600)
                change(&options)
                let resolver = try Resolver(loop: loop, options: options)
                let transport = LoopTransport(loop: loop, resolver: resolver)
                try await body(Stage(loop: loop, clock: clock, names: server, transport: transport))
                transport.closeIdle()
                resolver.close()
                await Task.yield()
            }
        }
    }

    @Test func `a server that moved is found by the first request after it, whatever the TTL is`() async throws {
        try await withStage { stage in
            let first = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            stage.answer("127.0.0.2")
            #expect(try await stage.get(first.port) == "a")
            let second = try NamedOrigin("b", at: "127.0.0.3", port: first.port, loop: stage.loop)
            first.stop()
            stage.answer("127.0.0.3")
            stage.pass(.milliseconds(1_250))
            #expect(try await stage.get(first.port) == "b")
            #expect(stage.lookups == 2)
            second.stop()
        }
    }

    @Test func `a connection that carried a request while its name lost the address is not used again`() async throws {
        try await withStage { stage in
            let first = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            let second = try NamedOrigin("b", at: "127.0.0.3", port: first.port, loop: stage.loop)
            stage.answer("127.0.0.2", ttl: 1)
            #expect(try await stage.get(first.port) == "a")
            stage.answer("127.0.0.3", ttl: 1)
            stage.pass(.seconds(2))
            // The second of them needs a connection of its own, for which the name is looked up.
            let port = first.port
            async let one = stage.get(port)
            async let other = stage.get(port)
            #expect(try await [one, other].sorted() == ["a", "b"])
            for _ in 0..<3 { #expect(try await stage.get(first.port) == "b") }
            first.stop()
            second.stop()
        }
    }

    @Test func `the same holds for an upstream proxy, and for a name with several addresses`() async throws {
        try await withStage { stage in
            let first = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            let hop = UpstreamProxy.Hop(host: "app.test", port: first.port)
            let endpoint = Endpoint(host: "192.0.2.1", port: 80, hop: hop, isPassing: true)
            stage.answer("127.0.0.2", "127.0.0.4")
            #expect(try await stage.get(80, by: endpoint) == "a")
            let second = try NamedOrigin("b", at: "127.0.0.3", port: first.port, loop: stage.loop)
            first.stop()
            stage.answer("127.0.0.4", "127.0.0.3")
            stage.pass(.milliseconds(1_250))
            #expect(try await stage.get(80, by: endpoint) == "b")
            second.stop()
        }
    }

    @Test func `while a server is away its name is looked up about once a second`() async throws {
        try await withStage { stage in
            let origin = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            stage.answer("127.0.0.2")
            #expect(try await stage.get(origin.port) == "a")
            origin.stop()
            stage.pass(.seconds(2))
            for _ in 0..<40 {
                #expect(try await stage.get(origin.port) == "connectionRefused")
                stage.pass(.milliseconds(100))
            }
            // Four seconds: at once, and then every 1 to 1.25 seconds.
            #expect((4...5).contains(stage.lookups - 1))
        }
    }

    @Test func `new connections look the name up for the others about once a second`() async throws {
        try await withStage { stage in
            let origin = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            stage.answer("127.0.0.2")
            let pool = stage.transport.pool(for: Endpoint(host: "app.test", port: origin.port, isPassing: true))
            let keeper = Keeper()
            /// When the next use looks the name up, from now.
            func connect() async throws -> Duration {
                stage.transport.inEvent { pool.make(for: ConnectionTicket(keeper), timeout: .seconds(1000)) }
                while keeper.takeNew() == 0 { await Task.yield() }
                return .nanoseconds(pool.nameEnds &- stage.loop.now.nanoseconds)
            }
            #expect(try await connect() > .seconds(5))
            var follows = 0
            for _ in 0..<40 {
                stage.pass(.milliseconds(100))
                let left = try await connect()
                if left > .seconds(5) { follows += 1 } else { #expect(left <= .milliseconds(1_250)) }
            }
            // Four seconds: every 1 to 1.25 seconds, at the next connection.
            #expect((3...4).contains(follows))
            #expect(stage.lookups == 1)
            keeper.close()
            origin.stop()
        }
    }

    /// Keeps the connections that it gets.
    private final class Keeper: ConnectionWaiter {
        private var streams: [any UpstreamStream] = []
        private var seen = 0

        func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) { streams.append(stream) }
        func connectionFailed(_ error: GatewayError) { Issue.record("\(error)") }

        func takeNew() -> Int {
            defer { seen = streams.count }
            return streams.count - seen
        }

        func close() { for case let connection as Http1UpstreamConnection in streams { connection.close() } }
    }

    // RFC 8767 §5.
    @Test func `while the name servers fail too, the last addresses are tried`() async throws {
        try await withStage { stage in
            let origin = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            stage.answer("127.0.0.2")
            #expect(try await stage.get(origin.port) == "a")
            origin.stop()
            stage.names.replies = ["app.test": .code(2)]
            stage.pass(.seconds(2))
            #expect(try await stage.get(origin.port) == "connectionRefused")
            let again = try NamedOrigin("b", at: "127.0.0.2", port: origin.port, loop: stage.loop)
            #expect(try await stage.get(origin.port) == "b")
            again.stop()
        }
    }

    @Test(arguments: [30, 120])
    func `servers that swap their addresses get each other's requests for the longest use of an answer`(seconds: Int)
        async throws
    {
        try await withStage {
            $0.longestUse = .seconds(seconds)
        } _: { stage in
            let first = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            let second = try NamedOrigin("b", at: "127.0.0.3", port: first.port, loop: stage.loop)
            stage.answer("127.0.0.2")
            #expect(try await stage.get(first.port) == "a")
            stage.answer("127.0.0.3")
            stage.pass(.seconds(seconds) - .milliseconds(1))
            #expect(try await stage.get(first.port) == "a")
            #expect(stage.lookups == 1)
            stage.pass(.milliseconds(1))
            // This request begins the lookup, and does not wait for it.
            #expect(try await stage.get(first.port) == "a")
            while stage.transport.resolver?.timeLeft(for: "app.test") ?? .zero <= .zero { await Task.yield() }
            #expect(try await stage.get(first.port) == "b")
            while first.count > 0 { await Task.yield() }
            first.stop()
            second.stop()
        }
    }

    @Test func `connections whose address the name still has are kept`() async throws {
        try await withStage { stage in
            let origin = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            stage.answer("127.0.0.2", ttl: 1)
            for count in 1...4 {
                #expect(try await stage.get(origin.port) == "a")
                while stage.transport.resolver?.timeLeft(for: "app.test") ?? .zero <= .zero { await Task.yield() }
                // Used often enough not to be too old.
                for _ in 0..<3 {
                    stage.pass(.seconds(10))
                    #expect(try await stage.get(origin.port) == "a")
                }
                stage.answer("127.0.0.\(count + 4)", "127.0.0.2", ttl: 1)
            }
            #expect(stage.transport.connects == 1)
            #expect(stage.lookups >= 4)
            origin.stop()
        }
    }

    @Test func `a reload looks names up again, and closes connections to former addresses`() async throws {
        try await withStage { stage in
            let first = try NamedOrigin("a", at: "127.0.0.2", loop: stage.loop)
            let second = try NamedOrigin("b", at: "127.0.0.3", port: first.port, loop: stage.loop)
            stage.answer("127.0.0.2")
            #expect(try await stage.get(first.port) == "a")
            stage.answer("127.0.0.3")
            stage.transport.refreshNames()
            #expect(try await stage.get(first.port) == "a")
            while stage.transport.resolver?.timeLeft(for: "app.test") ?? .zero <= .zero { await Task.yield() }
            #expect(try await stage.get(first.port) == "b")
            first.stop()
            second.stop()
        }
    }

    @Test func `a connection that is slow gives way to an address that the name has got meanwhile`() async throws {
        try await withStage { stage in
            // A listener whose queue is full answers no further packet.
            let silent = try SilentListener(at: "127.0.0.2")
            let origin = try NamedOrigin("b", at: "127.0.0.3", port: silent.port, loop: stage.loop)
            stage.answer("127.0.0.2")
            let port = silent.port
            let first = Task(executorPreference: stage.loop) { try await stage.get(port) }
            while stage.transport.resolver?.timeLeft(for: "app.test") == nil { await Task.yield() }
            for _ in 0..<20 { await Task.yield() }
            stage.answer("127.0.0.3")
            stage.pass(.milliseconds(1_300))
            #expect(try await first.value == "b")
            silent.close()
            origin.stop()
        }
    }
}
