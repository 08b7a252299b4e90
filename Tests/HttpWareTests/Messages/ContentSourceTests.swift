import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

@Suite struct ContentSourceTests {
    private let notes = Notes()

    private func answering(_ source: any ContentSource, _ status: HttpStatus = .ok, length: Int? = nil) -> OnRequest {
        OnRequest { _, _ in .abort(with: HttpResponse(status, source: source, length: length)) }
    }

    // MARK: Pieces

    @Test func `pieces go out as they come, and the next is asked for when one is out`() async throws {
        let source = ScriptedSource()
        let stage = try DriverStage([answering(source)])
        await stage.begin()
        #expect(await stage.step { [$0.client.status, source.asked, $0.client.ends] } == [200, 1, 0])
        await source.supply("one ", on: stage)
        #expect(await stage.step { $0.client.text } == "one ")
        await source.supply("two", on: stage)
        await source.finish(on: stage)
        await stage.step { stage in
            #expect(stage.client.text == "one two")
            #expect(stage.client.extent == .unknown)
            #expect(stage.client.ends == 1)
            #expect(source.asked == 3)
            #expect(source.cancellations == 0)
            #expect(stage.driver.phase == .ended)
        }
    }

    @Test func `a source may answer at once, again and again`() async throws {
        let source = ReadySource(pieces: 1000, of: 100)
        let stage = try DriverStage([answering(source, length: 100_000)])
        await stage.begin()
        await stage.advance(by: .milliseconds(1))
        for _ in 0..<32 { await stage.advance(by: .milliseconds(1)) }
        await stage.step { stage in
            #expect(stage.client.extent == .length(100_000))
            #expect(stage.client.content.count == 100_000)
            #expect(stage.client.ends == 1)
        }
    }

    @Test func `a source that answers at once lets others have their turn`() async throws {
        let source = ReadySource(pieces: 1000, of: 100)
        let stage = try DriverStage([answering(source)])
        await stage.begin()
        #expect(await stage.step { $0.client.content.count } == 6400)
    }

    @Test func `while the client takes nothing the source is not asked`() async throws {
        let source = ScriptedSource()
        let stage = try DriverStage([answering(source)])
        await stage.begin()
        await stage.step { $0.client.isBlocked = true }
        await source.supply("one", on: stage)
        #expect(await stage.step { _ in source.asked } == 1)
        await stage.step { stage in
            stage.client.isBlocked = false
            stage.driver.downstreamDrained()
        }
        #expect(await stage.step { _ in source.asked } == 2)
    }

    @Test func `a source may answer from another thread`() async throws {
        let source = ScriptedSource()
        let stage = try DriverStage([answering(source)])
        await stage.begin()
        let feed = try #require(source.feed)
        await Task.detached { feed.supply(Array("from afar".utf8)) }.value
        await stage.step { _ in }
        await Task.detached { feed.finish() }.value
        #expect(await stage.step { [$0.client.text, "\($0.client.ends)"] } == ["from afar", "1"])
    }

    // MARK: Unwanted content

    @Test func `a client that leaves cancels the source once, and what still comes is dropped`() async throws {
        let source = ScriptedSource()
        let stage = try DriverStage([answering(source)])
        await stage.begin()
        await stage.step { $0.driver.clientLeft() }
        await source.supply("late", on: stage)
        await source.finish(on: stage)
        await stage.step { stage in
            #expect(source.cancellations == 1)
            #expect(source.asked == 1)
            #expect(stage.client.text == "")
            #expect(stage.client.ends == 0)
        }
    }

    @Test func `the response to HEAD has the length and not the content`() async throws {
        let source = ScriptedSource()
        let stage = try DriverStage([answering(source, length: 5)])
        await stage.begin(.head)
        await stage.step { stage in
            #expect(stage.client.extent == .length(5))
            #expect(stage.client.ends == 1)
            #expect(source.asked == 0)
            #expect(source.cancellations == 1)
        }
    }

    @Test(arguments: [204, 304])
    func `a status without content has none, even if a ware sets it`(code: Int) async throws {
        let source = ScriptedSource()
        let changes = OnResponse { response, _ in
            response.status = try #require(HttpStatus(code))
            return .pass
        }
        let stage = try DriverStage([answering(source)], after: [changes])
        await stage.begin()
        await stage.step { stage in
            #expect(stage.client.status == code)
            #expect(stage.client.content.isEmpty)
            #expect(stage.client.ends == 1)
            #expect(source.cancellations == 1)
        }
    }

    @Test func `content from upstream does not follow a status that a postware made one without`() async throws {
        let changes = OnResponse { response, _ in
            response.status = .noContent
            return .pass
        }
        let stage = try DriverStage([], after: [changes])
        await stage.begin()
        await stage.step { $0.stream.respond(.ok, extent: .length(3)) }
        await stage.step { $0.stream.send("abc") }
        await stage.step { stage in
            #expect(stage.client.status == 204)
            #expect(stage.client.content.isEmpty)
            #expect(stage.client.ends == 1)
            #expect(stage.stream.isDiscarded)
        }
    }

    @Test func `a response that takes its place cancels the source`() async throws {
        let source = ScriptedSource()
        let replaces = OnResponse { _, _ in .replace(with: HttpResponse(.accepted, content: .text("other"))) }
        let stage = try DriverStage([answering(source)], after: [replaces])
        await stage.begin()
        await stage.step { stage in
            #expect([stage.client.status, stage.client.ends] == [202, 1])
            #expect(stage.client.text == "other")
            #expect(source.cancellations == 1)
        }
    }

    @Test func `a response may be replaced by one with a source`() async throws {
        let source = ScriptedSource()
        let replaces = OnResponse { _, _ in .replace(with: HttpResponse(.accepted, source: source)) }
        let stage = try DriverStage([], after: [replaces])
        await stage.begin()
        await stage.step { $0.stream.respond(text: "not this") }
        await source.supply("this", on: stage)
        await source.finish(on: stage)
        #expect(await stage.step { $0.client.text } == "this")
    }

    // MARK: Framing is not left to its word

    @Test(arguments: ["abcdef", "abc"])
    func `another length than it said cuts the response off`(text: String) async throws {
        let source = ScriptedSource()
        let stage = try DriverStage([answering(source, length: 5)])
        await stage.begin()
        await source.supply(text, on: stage)
        if text.utf8.count < 5 { await source.finish(on: stage) }
        await stage.step { stage in
            #expect([stage.client.cuts, stage.client.ends] == [1, 0])
            #expect(stage.client.content.count < 5)
        }
    }

    @Test func `a source that fails, or answers unasked, cuts the response off`() async throws {
        let failing = ScriptedSource()
        let stage = try DriverStage([answering(failing)])
        await stage.begin()
        await stage.step { _ in failing.feed?.fail("the disk is gone") }
        #expect(await stage.step { [$0.client.cuts, failing.cancellations] } == [1, 0])

        let talking = ScriptedSource()
        let other = try DriverStage([answering(talking)])
        await other.begin()
        await other.step { $0.client.isBlocked = true }
        await talking.supply("one", on: other)
        await talking.supply("two", on: other)
        #expect(await other.step { [$0.client.cuts, talking.cancellations] } == [1, 1])
    }

    // MARK: Wares on the way back

    @Test func `a ware that needs the content whole gets it`() async throws {
        let source = ScriptedSource()
        let reads = OnResponse(.whole(upTo: 64)) { [notes] response, _ in
            notes.add(response.content.bytes.map { String(decoding: $0, as: UTF8.self) } ?? "not whole")
            return .pass
        }
        let stage = try DriverStage([answering(source)], after: [reads])
        await stage.begin()
        await source.supply("one ", on: stage)
        await source.supply("two", on: stage)
        await source.finish(on: stage)
        #expect(notes.all == ["one two"])
        #expect(await stage.step { $0.client.extent } == .length(7))
    }

    @Test func `more than a ware takes whole is refused, and the source cancelled`() async throws {
        let source = ScriptedSource()
        let reads = OnResponse(.whole(upTo: 4)) { _, _ in .pass }
        let stage = try DriverStage([answering(source)], after: [reads])
        await stage.begin()
        await source.supply("12345", on: stage)
        #expect(await stage.step { [$0.client.status, source.cancellations] } == [502, 1])
    }

    @Test func `a filter sees each piece`() async throws {
        let source = ScriptedSource()
        let filters = OnResponse { _, exchange in
            exchange.filterResponseContent(with: Doubling())
            return .pass
        }
        let stage = try DriverStage([answering(source, length: 2)], after: [filters])
        await stage.begin()
        await source.supply("ab", on: stage)
        await source.finish(on: stage)
        #expect(await stage.step { [$0.client.text, "\($0.client.ends)"] } == ["aabb", "1"])
    }

    // MARK: Over the wire

    @Test(.timeLimit(.minutes(10)))
    func `a client that stops reading holds the source, and gets the rest when it reads on`() async throws {
        let length = 64 << 20
        let source = ThreadedSource(length: length, piece: 256 << 10)
        let stage = try SocketStage(.of([answering(source, length: length)]))
        let client = try stage.connect()
        await client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        try await eventually { source.supplied.load(ordering: .relaxed) > 0 }
        // The buffers of the kernel at both ends, and a piece.
        #expect(try await settledValue { source.supplied.load(ordering: .relaxed) } < 16 << 20)
        let all = await client.readToEnd()
        #expect(all.count > length)
        #expect(all.count < length + 1024)
        #expect(source.supplied.load(ordering: .relaxed) == length)
    }

    @Test(.timeLimit(.minutes(10)))
    func `a client that closes tells the source`() async throws {
        let source = ThreadedSource(length: 64 << 20, piece: 256 << 10)
        let stage = try SocketStage(.of([answering(source)]))
        do {
            let client = try stage.connect()
            await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = await client.read(atLeast: 1000)
        }
        try await eventually { source.isCancelled.load(ordering: .relaxed) }
        #expect(await stage.step { $0.server.connectionCount } == 0)
    }
}

/// Answers what the test says, when it says it.
///
/// Unchecked: touched on the stage's loop only, except `feed`, which stays once it is there.
private final class ScriptedSource: ContentSource, @unchecked Sendable {
    private(set) var asked = 0
    private(set) var cancellations = 0
    private(set) var feed: ContentFeed?

    func next(_ feed: ContentFeed) {
        self.feed = feed
        asked += 1
    }

    func cancelled() { cancellations += 1 }

    func supply(_ text: String, on stage: DriverStage) async {
        await stage.step { _ in self.feed?.supply(Array(text.utf8)) }
    }

    func finish(on stage: DriverStage) async { await stage.step { _ in self.feed?.finish() } }
}

/// Always has a piece at hand.
private final class ReadySource: ContentSource {
    private let left: Atomic<Int>
    private let size: Int

    init(pieces: Int, of size: Int) {
        left = Atomic(pieces)
        self.size = size
    }

    func next(_ feed: ContentFeed) {
        if left.subtract(1, ordering: .relaxed).newValue < 0 { return feed.finish() }
        feed.supply([UInt8](repeating: 0x61, count: size))
    }

    func cancelled() {}
}

/// Makes each piece on another thread, as a disk would.
private final class ThreadedSource: ContentSource {
    let supplied = Atomic(0)
    let isCancelled = Atomic(false)
    private let length: Int
    private let piece: Int

    init(length: Int, piece: Int) {
        self.length = length
        self.piece = piece
    }

    func next(_ feed: ContentFeed) {
        Task.detached { [self] in
            let from = supplied.load(ordering: .relaxed)
            if from == length { return feed.finish() }
            let count = min(piece, length - from)
            supplied.add(count, ordering: .relaxed)
            feed.supply([UInt8](repeating: 0x61, count: count))
        }
    }

    func cancelled() { isCancelled.store(true, ordering: .relaxed) }
}

/// Lets each byte out twice.
private final class Doubling: ContentFilter {
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        for byte in input { output += [byte, byte] }
    }
}
