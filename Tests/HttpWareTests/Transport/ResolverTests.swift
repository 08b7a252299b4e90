import Glibc
import HttpWareTesting
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct ResolverTests {
    /// Runs a test on a loop with a name server and a resolver that asks it; the clock is moved by hand.
    private func withResolver(
        _ change: @escaping @Sendable (inout Resolver.Options) -> Void = { _ in },
        _ body: @escaping @Sendable (Resolver, ScriptedNameServer, ManualClock) async throws -> Void
    ) async throws {
        let clock = ManualClock()
        try await withLoop(clock: clock) { loop in
            try await loop.task {
                let server = try ScriptedNameServer(loop: loop)
                var options = Resolver.Options()
                options.servers = [server.address]
                change(&options)
                let resolver = try Resolver(loop: loop, options: options)
                try await body(resolver, server, clock)
                resolver.close()
                await Task.yield()
            }
        }
    }

    private func addresses(_ texts: String...) -> [SocketAddress] { texts.compactMap { SocketAddress($0) } }

    @Test func `a name is resolved to its addresses of both families`() async throws {
        try await withResolver { resolver, server, _ in
            server.replies["A origin.test"] = .addresses(["192.0.2.1", "192.0.2.2", "192.0.2.1"], ttl: 60)
            server.replies["AAAA origin.test"] = .addresses(["2001:db8::1"], ttl: 60)
            let found = try await resolver.resolve("Origin.TEST", port: 80)
            #expect(Set(found) == Set(addresses("192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80")))
            #expect(found.count == 3)
            #expect(Set(server.questions) == ["A origin.test", "AAAA origin.test"])
            #expect(resolver.loop.isCurrent)
        }
    }

    @Test(arguments: ["A", "AAAA"])
    func `one family is enough`(type: String) async throws {
        try await withResolver { resolver, server, _ in
            server.replies["origin.test"] = .nothing
            server.replies["\(type) origin.test"] = .addresses(["192.0.2.1", "2001:db8::1"], ttl: 60)
            let found = try await resolver.resolve("origin.test", port: 80)
            #expect(found.count == 1)
        }
    }

    @Test(arguments: ["127.0.0.1", "[::1]", "::1"])
    func `an IP address is answered at once and without a question`(host: String) async throws {
        try await withResolver { resolver, server, _ in
            var answer: Result<[SocketAddress], ResolveError>?
            resolver.resolve(host, port: 80) { answer = $0 }
            let found = try #require(try answer?.get())
            #expect(found.count == 1 && found[0].isLoopback && found[0].port == 80)
            #expect(server.questions.isEmpty)
        }
    }

    @Test(arguments: [
        "", "a b", "a\u{0}b", "ä.test", "a/b", "[127.0.0.1]", "[::1", "a:80", String(repeating: "a.", count: 128),
        String(repeating: "a", count: 64) + ".test", "a..test",
    ])
    func `text that cannot be a name is not found`(host: String) async throws {
        try await withResolver { resolver, server, _ in
            await #expect(throws: ResolveError.notFound) { try await resolver.resolve(host, port: 80) }
            #expect(server.questions.isEmpty)
        }
    }

    @Test func `the hosts file is asked first`() async throws {
        try await withResolver { resolver, server, _ in
            let found = try await resolver.resolve("localhost", port: 80)
            #expect(found.allSatisfy { $0.isLoopback })
            #expect(server.questions.isEmpty)
        }
    }

    @Test(arguments: [(UInt32(0), 1), (7, 7), (86400, 30)])
    func `an answer is remembered by its TTL, one second to half a minute`(ttl: UInt32, seconds: Int) async throws {
        try await withResolver { resolver, server, clock in
            server.replies["A origin.test"] = .addresses(["192.0.2.1"], ttl: ttl)
            server.replies["AAAA origin.test"] = .nothing
            _ = try await resolver.resolve("origin.test", port: 80)
            clock.advance(by: .seconds(seconds) - .nanoseconds(1))
            await Task.yield()
            var isAnswered = false
            resolver.loop.tick()
            resolver.resolve("origin.test", port: 81) { answer in
                isAnswered = true
                #expect(answer == .success([.ip(IPAddress(ipv4: 0xc000_0201), port: 81)]))
            }
            #expect(isAnswered)
            clock.advance(by: .nanoseconds(1))
            resolver.loop.tick()
            _ = try await resolver.resolve("origin.test", port: 80)
            #expect(server.count("A origin.test") == 2)
        }
    }

    @Test func `an alias with a shorter TTL limits how long its target is remembered`() async throws {
        try await withResolver { resolver, server, clock in
            server.replies["origin.test"] = .alias("real.test", ttl: 5, addresses: ["192.0.2.9"], addressTTL: 60)
            let found = try await resolver.resolve("origin.test", port: 80)
            #expect(found == addresses("192.0.2.9:80"))
            clock.advance(by: .seconds(5))
            resolver.loop.tick()
            _ = try await resolver.resolve("origin.test", port: 80)
            #expect(server.count("A origin.test") == 2)
        }
    }

    @Test func `a name that does not exist is not found, and that is remembered for a second`() async throws {
        try await withResolver { resolver, server, clock in
            await #expect(throws: ResolveError.notFound) { try await resolver.resolve("none.test", port: 80) }
            let asked = server.questions.count
            await #expect(throws: ResolveError.notFound) { try await resolver.resolve("none.test", port: 80) }
            #expect(server.questions.count == asked)
            clock.advance(by: .seconds(1))
            resolver.loop.tick()
            server.replies["none.test"] = .addresses(["192.0.2.1"], ttl: 60)
            let found = try await resolver.resolve("none.test", port: 80)
            #expect(found.count == 1)
        }
    }

    @Test func `a name without addresses is not found`() async throws {
        try await withResolver { resolver, server, _ in
            server.replies["empty.test"] = .nothing
            await #expect(throws: ResolveError.notFound) { try await resolver.resolve("empty.test", port: 80) }
        }
    }

    @Test(arguments: [UInt8(2), 5])
    func `a server that fails or refuses is a server failure`(code: UInt8) async throws {
        try await withResolver { resolver, server, _ in
            server.replies["origin.test"] = .code(code)
            do throws(ResolveError) {
                _ = try await resolver.resolve("origin.test", port: 80)
                Issue.record("no error")
            } catch {
                if case .serverFailure = error {} else { Issue.record("\(error)") }
            }
        }
    }

    @Test func `a server that is silent is a timeout, after the whole time`() async throws {
        try await withResolver { resolver, server, clock in
            server.replies["origin.test"] = .silence
            var answer: Result<[SocketAddress], ResolveError>?
            resolver.resolve("origin.test", port: 80) { answer = $0 }
            clock.advance(by: .seconds(4))
            await Task.yield()
            #expect(answer == nil)
            clock.advance(by: .seconds(1))
            await Task.yield()
            #expect(answer == .failure(.timeout))
        }
    }

    // RFC 8767 §4 and §5.
    @Test(arguments: [UInt8(2), 5])
    func `addresses that have expired are used while the servers fail, for a day`(code: UInt8) async throws {
        try await withResolver { resolver, server, clock in
            server.replies["A origin.test"] = .addresses(["192.0.2.1"], ttl: 7)
            server.replies["AAAA origin.test"] = .nothing
            _ = try await resolver.resolve("origin.test", port: 80)
            server.replies = ["origin.test": .code(code)]
            clock.advance(by: .seconds(7))
            resolver.loop.tick()
            #expect(try await resolver.resolve("origin.test", port: 80) == addresses("192.0.2.1:80"))
            let asked = server.questions.count
            #expect(asked > 2)
            #expect(try await resolver.resolve("origin.test", port: 80) == addresses("192.0.2.1:80"))
            #expect(server.questions.count == asked)
            clock.advance(by: .seconds(5))
            resolver.loop.tick()
            server.replies = ["A origin.test": .addresses(["192.0.2.2"], ttl: 7), "AAAA origin.test": .nothing]
            #expect(try await resolver.resolve("origin.test", port: 80) == addresses("192.0.2.2:80"))
            server.replies = ["origin.test": .code(code)]
            clock.advance(by: .seconds(7) + Resolver.staleness)
            resolver.loop.tick()
            await #expect(throws: ResolveError.self) { try await resolver.resolve("origin.test", port: 80) }
        }
    }

    @Test func `addresses that have expired are used after half a second when the server is silent`() async throws {
        try await withResolver { resolver, server, clock in
            server.replies["A origin.test"] = .addresses(["192.0.2.1"], ttl: 7)
            server.replies["AAAA origin.test"] = .nothing
            _ = try await resolver.resolve("origin.test", port: 80)
            server.replies = ["origin.test": .silence]
            clock.advance(by: .seconds(7))
            resolver.loop.tick()
            var answer: Result<[SocketAddress], ResolveError>?
            resolver.resolve("origin.test", port: 80) { answer = $0 }
            clock.advance(by: .milliseconds(499))
            await Task.yield()
            #expect(answer == nil)
            clock.advance(by: .milliseconds(1))
            await Task.yield()
            #expect(answer == .success([.ip(IPAddress(ipv4: 0xc000_0201), port: 80)]))
        }
    }

    @Test func `addresses that have expired are not used when there is no such name any more`() async throws {
        try await withResolver { resolver, server, clock in
            server.replies["origin.test"] = .addresses(["192.0.2.1"], ttl: 7)
            _ = try await resolver.resolve("origin.test", port: 80)
            server.replies = [:]
            clock.advance(by: .seconds(7))
            resolver.loop.tick()
            await #expect(throws: ResolveError.notFound) { try await resolver.resolve("origin.test", port: 80) }
        }
    }

    @Test func `lookups of one name that are under way together are one`() async throws {
        try await withResolver { resolver, server, _ in
            server.replies["A origin.test"] = .addresses(["192.0.2.1"], ttl: 60)
            server.replies["AAAA origin.test"] = .nothing
            var ports: [UInt16?] = []
            for port in 1...5 as ClosedRange<UInt16> {
                resolver.resolve(port == 3 ? "ORIGIN.test" : "origin.test", port: port) { answer in
                    ports.append(try? answer.get().first?.port)
                }
            }
            _ = try await resolver.resolve("origin.test", port: 6)
            #expect(ports == [1, 2, 3, 4, 5])
            #expect(server.questions.count == 2)
        }
    }

    @Test func `a truncated answer is asked for again over TCP`() async throws {
        try await withResolver { resolver, server, _ in
            server.replies["A origin.test"] = .truncated((1...100).map { "192.0.2.\($0)" }, ttl: 60)
            server.replies["AAAA origin.test"] = .nothing
            let found = try await resolver.resolve("origin.test", port: 80)
            #expect(found.count == Resolver.maxAddresses)
            #expect(server.count("A origin.test/tcp") == 1)
        }
    }

    @Test func `a cancelled task ends at once, and the lookup is remembered for others`() async throws {
        try await withResolver { resolver, server, _ in
            server.replies["A origin.test"] = .addresses(["192.0.2.1"], ttl: 60)
            server.replies["AAAA origin.test"] = .nothing
            nonisolated(unsafe) let shared = resolver  // both tasks are on the loop's thread
            let task = Task(executorPreference: resolver.loop) {
                await #expect(throws: ResolveError.cancelled) { try await shared.resolve("origin.test", port: 80) }
            }
            await Task.yield()
            task.cancel()
            _ = await task.value
            _ = try await resolver.resolve("origin.test", port: 80)
            #expect(server.questions.count == 2)
        }
    }

    @Test func `a resolver that closes, or goes, ends what is under way`() async throws {
        try await withResolver { resolver, server, _ in
            server.replies["origin.test"] = .silence
            var answers: [Result<[SocketAddress], ResolveError>] = []
            var options = Resolver.Options()
            options.servers = [server.address]
            var other: Resolver? = try Resolver(loop: resolver.loop, options: options)
            other?.resolve("origin.test", port: 80) { answers.append($0) }
            other = nil
            #expect(answers == [.failure(.cancelled)])
            resolver.resolve("origin.test", port: 80) { answer in
                answers.append(answer)
                resolver.close()
            }
            resolver.close()
            resolver.resolve("origin.test", port: 80) { answers.append($0) }
            #expect(answers == Array(repeating: .failure(.cancelled), count: 3))
            #expect(resolver.loop.timers.count == 0)
        }
    }

    @Test func `a resolver may be closed by who receives its answer`() async throws {
        try await withResolver { resolver, server, _ in
            server.replies["A origin.test"] = .addresses(["192.0.2.1"], ttl: 60)
            server.replies["AAAA origin.test"] = .nothing
            let wait = LoopWait<Void>()
            resolver.resolve("origin.test", port: 80) { _ in
                resolver.close()
                wait.resume(returning: ())
            }
            try await wait.value()
        }
    }

    @Test func `the longest use of an answer can be chosen`() async throws {
        try await withResolver {
            $0.longestUse = .seconds(3600)
        } _: { resolver, server, clock in
            server.replies["A origin.test"] = .addresses(["192.0.2.1"], ttl: 7200)
            server.replies["AAAA origin.test"] = .nothing
            _ = try await resolver.resolve("origin.test", port: 80)
            clock.advance(by: .seconds(3599))
            resolver.loop.tick()
            _ = try await resolver.resolve("origin.test", port: 80)
            #expect(server.count("A origin.test") == 1)
            clock.advance(by: .seconds(1))
            resolver.loop.tick()
            _ = try await resolver.resolve("origin.test", port: 80)
            #expect(server.count("A origin.test") == 2)
        }
    }

    // MARK: The system's files

    /// A file that lists one name server, replaced as programs replace it: by a new file of the same name.
    private final class ServersFile {
        let path = "/tmp/httpware-servers-\(UInt64.random(in: .min ... .max))"

        deinit { unlink(path) }

        func write(_ server: ScriptedNameServer) throws {
            let text = Array("nameserver \(server.address.address.map { "\($0)" } ?? "")\n".utf8)
            let file = try #require(fopen(path + "+", "we"))
            fwrite(text, 1, text.count, file)
            fclose(file)
            #expect(rename(path + "+", path) == 0)
        }
    }

    /// Runs a test with two name servers, and a resolver that asks the one in a file.
    private func withFile(
        _ body:
            @escaping @Sendable (Resolver, ServersFile, ScriptedNameServer, ScriptedNameServer, ManualClock)
            async throws -> Void
    ) async throws {
        let clock = ManualClock()
        try await withLoop(clock: clock) { loop in
            try await loop.task {
                let former = try ScriptedNameServer(loop: loop)
                let next = try ScriptedNameServer(loop: loop, besides: former)
                for (server, address) in [(former, "192.0.2.1"), (next, "192.0.2.2")] {
                    for name in ["a.test", "b.test"] {
                        server.replies["A \(name)"] = .addresses([address], ttl: 600)
                        server.replies["AAAA \(name)"] = .nothing
                    }
                }
                let file = ServersFile()
                try file.write(former)
                var options = Resolver.Options()
                options.serversFile = file.path
                options.serversPort = former.address.port ?? 0
                let resolver = try Resolver(loop: loop, options: options)
                try await body(resolver, file, former, next, clock)
                resolver.close()
                await Task.yield()
            }
        }
    }

    @Test func `another name server in the file is asked from the next lookup on, within a second`() async throws {
        try await withFile { resolver, file, former, next, clock in
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.1:80"))
            try file.write(next)
            clock.advance(by: .seconds(1))
            resolver.loop.tick()
            #expect(try await resolver.resolve("b.test", port: 80) == addresses("192.0.2.2:80"))
            // Names of the former network are looked up again.
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.2:80"))
            #expect(former.questions.count == 2 && next.questions.count == 4)
        }
    }

    @Test func `a lookup that waits for a former name server begins again with the new one`() async throws {
        try await withFile { resolver, file, former, next, clock in
            former.replies = ["A a.test": .silence, "AAAA a.test": .silence]
            var answer: Result<[SocketAddress], ResolveError>?
            resolver.resolve("a.test", port: 80) { answer = $0 }
            while former.questions.isEmpty { await Task.yield() }
            try file.write(next)
            clock.advance(by: .seconds(1))
            resolver.loop.tick()
            #expect(try await resolver.resolve("b.test", port: 80) == addresses("192.0.2.2:80"))
            while answer == nil { await Task.yield() }
            #expect(answer == .success(addresses("192.0.2.2:80")))
        }
    }

    @Test func `a lookup that waits for a former name server notices the new one by itself`() async throws {
        try await withFile { resolver, file, former, next, clock in
            former.replies = ["A a.test": .silence, "AAAA a.test": .silence]
            var answer: Result<[SocketAddress], ResolveError>?
            clock.advance(by: .milliseconds(500))
            resolver.resolve("a.test", port: 80) { answer = $0 }
            while former.questions.isEmpty { await Task.yield() }
            try file.write(next)
            clock.advance(by: .milliseconds(500))
            resolver.loop.tick()
            while answer == nil { await Task.yield() }
            #expect(answer == .success(addresses("192.0.2.2:80")))
        }
    }

    @Test func `after a lookup that took too long the file is looked at again at once`() async throws {
        try await withFile { resolver, file, former, next, clock in
            former.replies = ["A a.test": .silence, "AAAA a.test": .silence]
            var answer: Result<[SocketAddress], ResolveError>?
            clock.advance(by: .milliseconds(1))
            resolver.resolve("a.test", port: 80) { answer = $0 }
            clock.advance(by: .seconds(5))
            while answer == nil { await Task.yield() }
            #expect(answer == .failure(.timeout))
            try file.write(next)
            clock.advance(by: .seconds(1))
            resolver.loop.tick()
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.2:80"))
        }
    }

    @Test func `a refresh reads a changed file, and looks every name up again`() async throws {
        try await withFile { resolver, file, former, next, _ in
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.1:80"))
            resolver.refresh()
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.1:80"))
            #expect(former.count("A a.test") == 2)
            try file.write(next)
            resolver.refresh()
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.2:80"))
        }
    }

    @Test func `a file that is gone leaves the last addresses in use`() async throws {
        try await withFile { resolver, file, former, _, clock in
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.1:80"))
            try file.write(former)
            former.replies = ["A a.test": .code(2), "AAAA a.test": .code(2)]
            resolver.refresh()
            #expect(try await resolver.resolve("a.test", port: 80) == addresses("192.0.2.1:80"))
        }
    }

    @Test func `too many lookups, or waiters, are refused`() async throws {
        try await withResolver { options in
            options.maxLookups = 1
            options.maxWaiters = 2
        } _: { resolver, server, _ in
            server.replies["a.test"] = .silence
            var answers: [Result<[SocketAddress], ResolveError>] = []
            resolver.resolve("a.test", port: 80) { _ in }
            resolver.resolve("b.test", port: 80) { answers.append($0) }
            resolver.resolve("a.test", port: 80) { _ in }
            resolver.resolve("a.test", port: 80) { answers.append($0) }
            #expect(answers == [.failure(.overloaded), .failure(.overloaded)])
        }
    }
}
