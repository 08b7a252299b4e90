import Foundation
import HttpWare
import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWareClient

@Suite struct StreamTests {
    struct Feed: Route {
        var path: RoutePath { "/feed" }
    }

    @Test func `lines come as they are sent, whatever pieces they come in`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /feed HTTP/1.1"),
            .send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n5\r\ntwo\r\n\r\n5\r\nthree\r\n0\r\n\r\n"
            ),
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            var lines: [String] = []
            for try await line in try await manager.stream(Feed()).lines { lines.append(line) }
            #expect(lines == ["one", "two", "three"])
        }
    }

    @Test func `server-sent events come with their type, data and id`() async throws {
        let text = "\u{feff}: hello\nid: 1\ndata: a\ndata: b\n\nevent: done\ndata:{}\n\ndata: dropped"
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text(text)) }
        let manager = HttpManager(service: try .local(origin.port))
        var events: [ServerEvent] = []
        for try await event in try await manager.stream(Feed()).events { events.append(event) }
        #expect(
            events == [
                ServerEvent(type: "message", data: "a\nb", id: "1"), ServerEvent(type: "done", data: "{}", id: "1"),
            ])
    }

    @Test func `an event that never ends fails at its limit`() async throws {
        let origin = try LocalOrigin { _ in
            HttpResponse(
                .ok, content: .text(String(repeating: "data: \(String(repeating: "a", count: 90))\n", count: 50)))
        }
        var events = try await HttpManager(service: try .local(origin.port)).stream(Feed()).events
        events.limit = .kibibytes(1)
        let error = await #expect(throws: HttpError.self) { for try await _ in events {} }
        #expect(error?.fault == .exchange(.responseContentTooLarge))
    }

    @Test func `an event that is too long fails after the events before it`() async throws {
        let long = String(repeating: "a", count: 1025)
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text("data: a\n\ndata: \(long)\n\n")) }
        var stream = try await HttpManager(service: try .local(origin.port)).stream(Feed()).events
        stream.limit = .kibibytes(1)
        var events = stream.makeAsyncIterator()
        #expect(try await events.next() == ServerEvent(data: "a"))
        let error = await #expect(throws: HttpError.self) { _ = try await events.next() }
        #expect(error?.fault == .exchange(.responseContentTooLarge))
    }

    @Test func `content streams both ways over a connection`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "POST /pipe", lines: ["Transfer-Encoding: chunked"]), .expect("3\r\none\r\n"),
            .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nONE\r\n"),
            .expect("3\r\ntwo\r\n"), .send("3\r\nTWO\r\n"), .expect("0\r\n\r\n"), .send("0\r\n\r\n"),
        ]) { origin in
            let (pieces, input) = AsyncStream<[UInt8]>.makeStream()
            input.yield(Array("one".utf8))
            let manager = HttpManager(service: try .local(origin.port))
            let response = try await manager.stream(Request<RawContent>(.post, "/pipe", content: .stream(pieces)))
            var answers = response.bytes.makeAsyncIterator()
            #expect(try await answers.next() == Array("ONE".utf8))
            input.yield(Array("two".utf8))
            #expect(try await answers.next() == Array("TWO".utf8))
            input.finish()
            #expect(try await answers.next() == nil)
        }
    }

    @Test func `the values of a stream are read by the decoder of its route`() async throws {
        struct Rows: Route {
            var path: RoutePath { "/rows" }
            var decoder: (any ModelDecoder)? {
                JsonCoder(decoding: { $0.keyDecodingStrategy = .convertFromSnakeCase })
            }
        }
        struct Row: Decodable, Sendable { var isDone: Bool }
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text(#"{"is_done":true}"# + "\n")) }
        let manager = HttpManager(service: try .local(origin.port))
        let response = try await manager.stream(Rows())
        var isDone: [Bool] = []
        for try await row in response.values(Row.self) { isDone.append(row.isDone) }
        #expect(isDone == [true])
        #expect(response.request.path == "/rows")
    }

    @Test func `JSON lines come as values, and a bad one says which it is`() async throws {
        let text = #"{"id":1,"title":"a","isDone":false}"# + "\n\n" + #"{"id":2}"# + "\n"
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text(text)) }
        let manager = HttpManager(service: try .local(origin.port))
        var values: [Todo] = []
        let error = await #expect(throws: HttpError.self) {
            for try await value in try await manager.stream(Feed()).values(Todo.self) { values.append(value) }
        }
        #expect(values.map(\.id) == [1])
        #expect(error?.problem?.kind == .missing)
        #expect(error?.problem?.path == "title")
    }

    @Test func `a task that takes nothing stops the origin server, not the memory`() async throws {
        let sent = Mutex(0)
        let origin = try LocalOrigin { _ in HttpResponse(.ok, source: Endless { sent.withLock { $0 += 1 } }) }
        let manager = HttpManager(service: try .local(origin.port))
        let response = try await manager.stream(Feed())
        var iterator = response.bytes.makeAsyncIterator()
        _ = try await iterator.next()
        // It stands still when the buffers on the way are full.
        var last = -1
        while last != sent.withLock({ $0 }) {
            last = sent.withLock { $0 }
            for _ in 0..<2000 { await Task.yield() }
        }
        #expect(last < 1024)
        var taken = 0
        while taken < 64 << 20, let piece = try await iterator.next() { taken += piece.count }
        #expect(taken >= 64 << 20)
        #expect(sent.withLock { $0 } > last)
    }

    @Test func `a cancelled task ends the exchange and its stream upstream`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /feed HTTP/1.1"),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin"), .expectEnd,
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            let begun = LoopWait<Void>()
            let task = Task {
                var count = 0
                for try await piece in try await manager.stream(Feed()).bytes {
                    count += piece.count
                    if count == 5 { begun.resume(returning: ()) }
                }
            }
            try await begun.value()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `a cancelled task that waits for a response ends the connection`() async throws {
        try await ScriptedOrigin.run([.expectHead(startingWith: "GET /todos/1 HTTP/1.1"), .expectEnd]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            let task = Task { try await manager.send(GetTodo(id: 1)) }
            while origin.heads.isEmpty { await Task.yield() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `a response that no receiver takes ends with the last one that could`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /feed HTTP/1.1"),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin"), .expectEnd,
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            let status = try await manager.stream(Feed()).status
            #expect(status == .ok)
        }
    }

    @Test func `a response that is cut off in its middle throws, whole or streamed`() async throws {
        for isStreamed in [true, false] {
            try await ScriptedOrigin.run([
                .expectHead(startingWith: "GET /feed HTTP/1.1"),
                .send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin"), .close,
            ]) { origin in
                let manager = HttpManager(service: try .local(origin.port))
                let error = await #expect(throws: HttpError.self) {
                    if isStreamed {
                        for try await _ in try await manager.stream(Feed()).bytes {}
                    } else {
                        _ = try await manager.send(Feed())
                    }
                }
                #expect(error?.fault == .exchange(.responseIncomplete))
                #expect(error?.stage == .receiving)
                #expect(error?.side == .upstream)
                #expect(error?.route == "Feed")
            }
        }
    }
}

/// Content without end, 64 KiB a piece.
private final class Endless: ContentSource {
    let count: @Sendable () -> Void

    init(_ count: @escaping @Sendable () -> Void) { self.count = count }

    func next(_ feed: ContentFeed) {
        count()
        feed.supply([UInt8](repeating: 0x78, count: 65536))
    }

    func cancelled() {}
}
