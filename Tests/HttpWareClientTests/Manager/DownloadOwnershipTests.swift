import Foundation
import HttpWare
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

/// Downloads that share a path, a URL, or a server that changes its mind.
@Suite struct DownloadOwnershipTests {
    private let folder = TemporaryFolder()

    private func get(_ path: RoutePath) -> Request<RawContent> { Request(.get, path) }

    @Test func `two downloads of one file to one path at the same time bring it once, to both`() async throws {
        let gate = LoopWait<Void>()
        let origin = try LocalOrigin { _ in
            try await gate.value()
            return HttpResponse(.ok, content: .bytes(count: 300_000))
        }
        let manager = HttpManager(service: try .local(origin.port))
        let path = folder.path + "/file"
        let seen = ThreadLock<[Int: Int]>([:])
        let tasks = (0..<2).map { number in
            Task {
                try await manager.download(get("/file"), to: path) { step in
                    seen.withLock { $0[number] = step.bytes }
                }
            }
        }
        try await eventually { origin.requests.count == 1 }
        gate.resume(returning: ())
        for task in tasks { #expect(try await task.value.bytes == 300_000) }
        #expect(try Data(contentsOf: URL(filePath: path)).count == 300_000)
        #expect(origin.requests.count == 1)
        #expect(seen.withLock { $0[0] } == 300_000)
    }

    @Test func `downloads of two files to one path take turns`() async throws {
        let origin = try LocalOrigin { HttpResponse(.ok, content: .text(String(repeating: $0.path, count: 20_000))) }
        let manager = HttpManager(service: try .local(origin.port))
        let path = folder.path + "/file"
        async let one = manager.download(get("/one"), to: path)
        async let two = manager.download(get("/two"), to: path)
        let sizes = try await [one.bytes, two.bytes]
        #expect(sizes == [80_000, 80_000])
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(["/one", "/two"].map { String(repeating: $0, count: 20_000) }.contains(text))
    }

    @Test func `a part that another process writes is left alone, and the error says so`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text("new")) }
        let path = folder.path + "/file"
        let other = open(path + ".part", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        #expect(flock(other, LOCK_EX) == 0 && write(other, "old", 3) == 3)
        let manager = HttpManager(service: try .local(origin.port))
        let error = await #expect(throws: HttpError.self) { try await manager.download(get("/file"), to: path) }
        #expect(error?.fault == .fileFailed && error?.reason.contains("another download") == true)
        #expect(try String(contentsOfFile: path + ".part", encoding: .utf8) == "old")
        close(other)
        #expect(try await manager.download(get("/file"), to: path).bytes == 3)
    }

    @Test func `a download that is refused leaves no part`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.notFound) }
        let manager = HttpManager(service: try .local(origin.port))
        let error = await #expect(throws: HttpError.self) {
            try await manager.download(get("/file"), to: folder.path + "/file")
        }
        #expect(error?.status == .notFound)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `a part of another URL is not resumed, though the validators are equal`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /one"),
            .send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234"), .close, .accept,
            .expectHead(startingWith: "GET /two", without: ["Range", "If-Range"]),
            .send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\nabcdefghij"),
        ]) { origin in
            let path = folder.path + "/file"
            let manager = HttpManager(service: try .local(origin.port))
            await #expect(throws: HttpError.self) { try await manager.download(get("/one"), to: path, attempts: 1) }
            _ = try await manager.download(get("/two"), to: path)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "abcdefghij")
        }
    }

    @Test(arguments: [("00:00:59", false), ("00:01:00", true)])
    func `RFC 9110 §8.8.2.2: a date is a validator only if the response is a minute younger`(
        sent: String, isResumed: Bool
    ) async throws {
        let fields = "Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\nDate: Sun, 01 Nov 2026 \(sent) GMT\r\n"
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /file"),
            .send("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 10\r\n\r\n01234"), .close, .accept,
            isResumed
                ? .expectHead(startingWith: "GET /file", lines: ["If-Range: Sun, 01 Nov 2026 00:00:00 GMT"])
                : .expectHead(startingWith: "GET /file", without: ["Range"]),
            .send(
                isResumed
                    ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789"
                    : "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"),
        ]) { origin in
            let path = folder.path + "/file"
            _ = try await HttpManager(service: try .local(origin.port)).download(get("/file"), to: path)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "0123456789")
        }
    }

    @Test(arguments: [
        "Content-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789",
        "Content-Range: bytes 5-9/11\r\nContent-Length: 5\r\n\r\n56789",
        "Content-Range: bytes 5-8/9\r\nContent-Length: 4\r\n\r\n5678",
        "Content-Range: bytes 5-8/10\r\nContent-Length: 4\r\n\r\n5678",
        "Content-Range: bytes 5-9/10\r\nETag: \"v2\"\r\nContent-Length: 5\r\n\r\nfghij",
        "Content-Length: 5\r\n\r\n56789",
    ])
    func `a response that does not fit to the part begins the download again`(answer: String) async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /file"),
            .send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234"), .close, .accept,
            .expectHead(startingWith: "GET /file", lines: ["Range: bytes=5-"]),
            .send("HTTP/1.1 206 Partial Content\r\n\(answer)"), .close, .accept,
            .expectHead(startingWith: "GET /file", without: ["Range", "If-Range"]),
            .send("HTTP/1.1 200 OK\r\nETag: \"v2\"\r\nContent-Length: 10\r\n\r\nabcdefghij"),
        ]) { origin in
            let path = folder.path + "/file"
            var service = try ServiceDefinition.local(origin.port)
            service.pool.maxIdle = 0
            _ = try await HttpManager(service: service).download(get("/file"), to: path, attempts: 2)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "abcdefghij")
        }
    }

    // MARK: Random interleavings

    /// A server of two files whose versions change, which cuts off, and makes mistakes that a client can notice. Both files have the
    /// same validators.
    private final class Shaky: StreamingHttpClient {
        struct Cut: Error {}

        private let state: Mutex<(random: SplitMix, version: Int)>

        init(seed: UInt64) { state = Mutex((SplitMix(state: seed), 1)) }

        /// The number of versions so far.
        var versions: Int { state.withLock { $0.version } }

        private static let made = Mutex<[String: [UInt8]]>([:])

        static func content(_ path: String, _ version: Int) -> [UInt8] {
            made.withLock { made in
                let key = "\(path) \(version)"
                if let known = made[key] { return known }
                var random = SplitMix(state: UInt64(version) &* 31 &+ UInt64(path.utf8.count))
                let content = (0..<Int.random(in: 1...40_000, using: &random)).map {
                    UInt8(truncatingIfNeeded: $0 &* (version &+ path.utf8.count))
                }
                made[key] = content
                return content
            }
        }

        private func number(_ range: ClosedRange<Int>) -> Int {
            state.withLock { Int.random(in: range, using: &$0.random) }
        }

        func respond(to request: HttpRequest, content: RequestPieces) async throws -> StreamedAnswer {
            let version = state.withLock { state in
                if Int.random(in: 0..<6, using: &state.random) == 0 { state.version += 1 }
                return state.version
            }
            for _ in 0..<number(0...4) { await Task.yield() }
            let whole = Shaky.content(request.path, version)
            let mistake = number(0...9)
            var head = HttpResponse(.ok)
            var bytes = whole[...]
            let tag = "\"v\(version)\""
            if mistake == 9 { head.fields["ETag"] = "W/\(tag)" } else if mistake != 8 { head.fields["ETag"] = tag }
            let range = request.fields[.range].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) }
            if let range, range < whole.count, request.fields[.ifRange] == tag || mistake == 5 {
                let first = mistake == 4 ? range / 2 : range
                bytes = whole[first...]
                head.status = .partialContent
                let total = mistake == 3 ? whole.count + 1 : whole.count
                if mistake != 2 { head.fields["Content-Range"] = "bytes \(first)-\(whole.count - 1)/\(total)" }
                // A version that is not told apart by a validator cannot be noticed.
                if mistake == 5 { head.fields["ETag"] = tag }
            } else if range != nil, range.map({ $0 >= whole.count }) == true, mistake == 1 {
                return StreamedAnswer(HttpResponse(.rangeNotSatisfiable))
            }
            let isLengthKnown = mistake != 7
            head.content = .streamed(length: isLengthKnown ? bytes.count : nil)
            let end = number(0...2) == 0 ? number(0...bytes.count) : bytes.count
            let pieces = stride(from: 0, to: end, by: 4096).map { start in
                Array(bytes.dropFirst(start).prefix(Swift.min(4096, end - start)))
            }
            let isCut = end < bytes.count
            let yields = number(0...3)
            return StreamedAnswer(
                head,
                content: AsyncThrowingStream<[UInt8], any Error> { continuation in
                    Task {
                        for piece in pieces {
                            for _ in 0..<yields { await Task.yield() }
                            continuation.yield(piece)
                        }
                        continuation.finish(throwing: isCut ? Cut() : nil)
                    }
                })
        }
    }

    @Test(arguments: 0..<4)
    func `no download succeeds over wrong bytes, in 1,000 random interleavings`(quarter: Int) async throws {
        var successes = 0
        for seed in quarter * 250..<(quarter + 1) * 250 {
            var random = SplitMix(state: UInt64(seed) &* 7919)
            let server = Shaky(seed: UInt64(seed))
            var service = "http://api.example.test".service
            service.timeouts.response = .seconds(600)
            let manager = HttpManager(service: service, client: .streaming(server))
            // Some begin with the part of another download.
            let path = folder.path + "/file-\(seed / 5)"
            let calls = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                let file: RoutePath = Bool.random(using: &random) ? "/one" : "/three"
                let attempts = Int.random(in: 1...4, using: &random)
                let cancelAfter = Int.random(in: 0...60, using: &random)
                let request = get(file)
                let task = Task { try await manager.download(request, to: path, attempts: attempts) }
                if cancelAfter < 20 {
                    Task {
                        for _ in 0..<cancelAfter { await Task.yield() }
                        task.cancel()
                    }
                }
                return (file.text, task)
            }
            var sizes: [(String, Int)] = []
            for (file, task) in calls { if let done = try? await task.value { sizes.append((file, done.bytes)) } }
            successes += sizes.count
            for (file, size) in sizes {
                #expect((1...server.versions).contains { Shaky.content(file, $0).count == size }, "seed \(seed)")
            }
            guard !sizes.isEmpty else { continue }
            let bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
            let isWhole = sizes.contains { file, size in
                size == bytes.count && (1...server.versions).contains { Shaky.content(file, $0) == bytes }
            }
            #expect(isWhole, "seed \(seed): \(bytes.count) bytes are no version of the file")
        }
        #expect(successes > 100)
    }
}

/// Random numbers from a seed.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
