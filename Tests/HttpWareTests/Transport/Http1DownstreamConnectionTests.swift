import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

@Suite struct Http1DownstreamConnectionTests {
    private let notes = Notes()

    private func answering(_ count: Int) -> OnRequest {
        OnRequest { _, _ in .abort(with: HttpResponse(.ok, content: .bytes(count: count))) }
    }

    @Test func `a client that sends requests and reads no responses is read no further`() async throws {
        let handled = Atomic(0)
        let answers = OnRequest { _, _ in
            handled.add(1, ordering: .relaxed)
            return .abort(with: HttpResponse(.ok, content: .bytes(count: 4096)))
        }
        // Its clock stands still: a busy machine is not an idle client.
        let stage = try SocketStage(.of([answers]), stops: true)
        let client = try stage.connect()
        let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        let most = 5_000
        let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        let all = Array((String(repeating: request, count: most - 1) + last).utf8)
        let sent = await client.send(all, patience: 300)
        #expect(try await settledValue { handled.load(ordering: .relaxed) } < most / 2)
        // All of them are answered once the client reads.
        async let rest = client.send(Array(all[sent...]), patience: 10_000)
        #expect(await client.readToEnd().count > most * 4096)
        #expect(await rest == all.count - sent)
        #expect(handled.load(ordering: .relaxed) == most)
    }

    @Test func `output that makes progress is not cut off by the idle timeout`() async throws {
        var settings = ServerSettings()
        settings.idleTimeout = .seconds(10)
        let stage = try SocketStage(.of([answering(32 << 20)]), settings: settings, stops: true)
        let client = try stage.connect()
        await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        var count = 0
        for _ in 0..<64 {
            let next = await client.read(atLeast: 512 << 10)
            count += next.count
            stage.clock?.advance(by: .seconds(1))
            await stage.step { _ in }
        }
        #expect(count == 32 << 20)
    }

    @Test func `output that makes no progress is cut off by the idle timeout`() async throws {
        var settings = ServerSettings()
        settings.idleTimeout = .seconds(10)
        let stage = try SocketStage(.of([answering(32 << 20)]), settings: settings, stops: true)
        let client = try stage.connect()
        await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = await client.read(atLeast: 1)
        for _ in 0..<3 {
            stage.clock?.advance(by: .seconds(10))
            await stage.step { _ in }
        }
        #expect(await stage.step { $0.server.connectionCount } == 0)
    }

    @Test func `a client that says that it sends no more gets the rest of its response`() async throws {
        let stage = try SocketStage(.of([answering(16 << 20)]))
        let client = try stage.connect()
        await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = await client.read(until: "\r\n\r\n")
        client.endSending()
        #expect(await client.readToEnd().count > 15 << 20)
    }

    @Test func `a connection whose head went out before the drain closes behind its response`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET"), .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"), .pause,
            .send("cd"),
        ])
        // No deadline runs out meanwhile, however long the test has to wait for its turn.
        let stage = try SocketStage(.of([]), port: origin.port, stops: true)
        let client = try stage.connect()
        await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = await client.read(until: "ab")
        await stage.step { $0.server.drain() }
        origin.proceed()
        #expect(await client.read(until: "cd") == "cd")
        // Once the loop has done with what sent it.
        await stage.step { _ in }
        stage.clock?.advance(by: .seconds(1))
        #expect(await client.isClosed(within: 20_000))
        try await origin.verify()
    }

    @Test func `bytes that a client sends when its tunnel broke are not read as a request`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET /tunnel"),
            .send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\nhello"), .reset,
        ])
        let requests = OnRequest { [notes] request, _ in
            notes.add(request.path)
            return .pass
        }
        let stage = try SocketStage(.of([requests]), port: origin.port)
        let client = try stage.connect()
        await client.send("GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n")
        _ = await client.read(until: "\r\n\r\n")
        try await origin.verify()
        await client.send("GET /not-a-request HTTP/1.1\r\nHost: a\r\n\r\n")
        let rest = String(decoding: await client.readToEnd(patience: 20_000), as: UTF8.self)
        #expect(!rest.contains("HTTP/"))
        #expect(notes.all == ["/tunnel"])
    }

    @Test func `a client that neither reads nor is read is let go after the idle timeout`() async throws {
        // The origin server sends without end and reads nothing, so the upload and the download both stand still.
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "POST"),
            .send(Array("HTTP/1.1 200 OK\r\n\r\n".utf8) + [UInt8](repeating: 0x78, count: 64 << 20)),
        ])
        defer { origin.stop() }
        let stage = try SocketStage(.of([]), port: origin.port, stops: true)
        let client = try stage.connect()
        await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
        _ = await client.send([UInt8](repeating: 0x79, count: 64 << 20), patience: 500)
        for _ in 0..<4 {
            stage.clock?.advance(by: .seconds(61))
            await stage.step { _ in }
        }
        #expect(await stage.step { $0.server.connectionCount } == 0)
    }

    @Test func `an exchange whose connection ends while it is refused is told so`() async throws {
        let waits = OnResponse { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .seconds(3600))
                return .pass
            }
        }
        let stage = try SocketStage(.of([Observing(notes: notes)], [waits]), stops: true)
        let client = try stage.connect()
        await client.send("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n")
        while await stage.step({ $0.server.connectionCount }) == 0 { await Task.yield() }
        client.endSending()
        var turns = 0
        while await stage.step({ $0.server.connectionCount }) > 0, turns < 5000 {
            turns += 1
            await Task.yield()
        }
        #expect(notes.all == ["/x client left -"])
    }

    // MARK: Clients that end their side

    /// Answers with the path after this number of milliseconds of the stage's clock.
    private func slow(_ milliseconds: Int) -> OnRequest {
        OnRequest { _, _ in
            .wait { request, exchange in
                try await exchange.sleep(for: .milliseconds(milliseconds))
                return .abort(with: HttpResponse(.ok, content: .text("answer to \(request.path)")))
            }
        }
    }

    /// Moves the clock in steps, with some turns of the loop for each.
    private func pass(_ seconds: Int, of stage: SocketStage) async {
        for _ in 0..<(seconds * 4) { await passQuarter(of: stage) }
    }

    private func passQuarter(of stage: SocketStage) async {
        for _ in 0..<4 { await stage.step { _ in } }
        stage.clock?.advance(by: .milliseconds(250))
        for _ in 0..<4 { await stage.step { _ in } }
    }

    private func untilBusy(_ stage: SocketStage) async {
        while await stage.step({ $0.server.busyCount }) == 0 { await Task.yield() }
    }

    @Test(arguments: [500, 15_000])
    func `RFC 9112 §9.6, a client that ends its side behind a whole request gets the answer`(milliseconds: Int)
        async throws
    {
        let stage = try SocketStage(.of([slow(milliseconds)]), stops: true)
        let client = try stage.connect()
        await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        client.endSending()
        await untilBusy(stage)
        await pass(milliseconds / 1000 + 1, of: stage)
        let answer = String(decoding: await client.readToEnd(patience: 20_000), as: UTF8.self)
        #expect(answer.hasSuffix("answer to /a"))
        #expect(answer.contains("HTTP/1.1 200 OK\r\n") && answer.contains("Connection: close"))
        #expect(answer.hasPrefix("HTTP/1.1 100 Continue") == (milliseconds > 1000))
    }

    @Test func `pipelined requests before the end are all answered`() async throws {
        let stage = try SocketStage(.of([slow(1000)]), stops: true)
        let client = try stage.connect()
        await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")
        client.endSending()
        await untilBusy(stage)
        await pass(3, of: stage)
        let answer = String(decoding: await client.readToEnd(patience: 20_000), as: UTF8.self)
        #expect(answer.contains("answer to /a") && answer.hasSuffix("answer to /b"))
    }

    @Test func `a client that closes its connection is found out before the response begins`() async throws {
        let stage = try SocketStage(.of([slow(3_600_000), Observing(notes: notes)]), stops: true)
        do {
            let client = try stage.connect()
            await client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
            await untilBusy(stage)
        }
        // A reset comes from the system, which has its own time. The response would begin after an hour.
        try await eventually {
            await passQuarter(of: stage)
            return await stage.step { $0.server.connectionCount } == 0
        }
        #expect(notes.all == ["/x client left -"])
    }

    @Test func `RFC 9110 §9.3.6, bytes behind a refused CONNECT are not a request`() async throws {
        var settings = ServerSettings()
        settings.isForward = true
        let requests = OnRequest { [notes] request, _ in
            notes.add(request.method.name)
            return .abort(with: HttpResponse(.proxyAuthenticationRequired))
        }
        let stage = try SocketStage(.of([requests]), settings: settings)
        let client = try stage.connect()
        await client.send("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
        #expect(await client.read(until: "\r\n\r\n").contains("Connection: close"))
        await client.send("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        let rest = String(decoding: await client.readToEnd(patience: 20_000), as: UTF8.self)
        #expect(!rest.contains("HTTP/1.1"))
        #expect(notes.all == ["CONNECT"])
    }

    // MARK: Content that no ware reads

    @Test(arguments: [("5\r\nhello\r\n0\r\n\r\n", 200), ("6\r\nhello!\r\n0\r\n\r\n", 413)])
    func `content that no ware reads is counted as it comes`(content: String, status: Int) async throws {
        let limits = OnRequest { request, _ in
            request.content.limit(to: 5)
            return .pass
        }
        let stage = try SocketStage(.of([limits, answering(1)]), stops: true)
        let client = try stage.connect()
        await client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        await untilBusy(stage)
        await client.send(content)
        let answer = String(decoding: await client.readToEnd(patience: 20_000), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
    }

    @Test func `a client that waits for 100 is answered without its content`() async throws {
        let limits = OnRequest { request, _ in
            request.content.limit(to: 5)
            return .pass
        }
        let stage = try SocketStage(.of([limits, answering(1)]), stops: true)
        let client = try stage.connect()
        await client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
        #expect(await client.read(until: "\r\n\r\nx").hasPrefix("HTTP/1.1 200 OK"))
    }

    // MARK: Paths

    @Test(arguments: [
        ("/a//b", 400), ("/a%2Fb", 400), ("/a%5cb", 400), ("/a\\b", 400), ("/a;b", 400), ("/a%3Bb", 400),
        ("/%2561", 400), ("/a/b?c=//;%2F", 200), ("/a%20b", 200), ("http://a//b", 400), ("http://a/b", 200),
    ])
    func `a strict listener refuses paths that servers read differently`(path: String, status: Int) async throws {
        var settings = ServerSettings()
        let request = "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        let lenient = try SocketStage(.of([answering(1)]), settings: settings)
        #expect(try await lenient.exchange(request).hasPrefix("HTTP/1.1 200 "))
        settings.refusesAmbiguousPaths = true
        let strict = try SocketStage(.of([answering(1)]), settings: settings)
        #expect(try await strict.exchange(request).hasPrefix("HTTP/1.1 \(status) "))
    }
}
