import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(5))) struct MirrorTests {
    /// A chain with a mirror, and the service that gets the copies.
    private struct Stage {
        let exchange: TestExchange
        let shadow: TestExchange
        let mirror: Mirror
        let records = RecordRing(mostRecords: 10, mostBytes: .mebibytes(1))

        init(_ mirror: Mirror, before: [any Ware] = [], behind: [any Ware] = []) throws {
            shadow = try TestExchange([])
            var setting = TestExchange.Setting()
            setting.services = ["shadow": shadow.upstream.port]
            setting.records = records
            exchange = try TestExchange(before + [mirror] + behind, setting: setting)
            self.mirror = mirror
        }

        func count(_ result: String) -> Int {
            mirror.counter.numbers.first { $0.label?.value == result }?.value ?? -1
        }

        var differences: Int {
            mirror.counter.numbers.first { $0.name == "httpware_mirror_differences_total" }?.value ?? -1
        }

        var inFlight: Int { mirror.counter.numbers.first { $0.name == "httpware_mirror_in_flight" }?.value ?? -1 }

        func until(_ condition: () -> Bool) async { while !condition() { await Task.yield() } }

        /// The note of the mirror in the record of the last exchange.
        var note: String? { records.recent(1).first?.record.wares.compactMap(\.note).joined(separator: "; ") }
    }

    @Test func `a copy has the method, target, fields and content of the request`() async throws {
        let stage = try Stage(Mirror(service: "shadow", header: "X-Mirrored"))
        _ = try await stage.exchange.send(.get("/a%20b?c=d", fields: ["X-One": "1", "Cookie": "a=b"]))
        _ = try await stage.exchange.send(.post("/e", content: .bytes(count: 100_000)))
        await stage.shadow.untilAsked(2)
        let copies = stage.shadow.upstream.requests
        #expect(copies.map(\.method) == [.get, .post])
        #expect(copies.map(\.upstreamTarget) == ["/a%20b?c=d", "/e"])
        #expect((copies[0].fields["X-One"], copies[0].fields[.cookie]) == ("1", "a=b"))
        #expect(copies[1].content.bytes?.count == 100_000)
        for copy in copies { #expect(copy.fields["X-Mirrored"]?.utf8.count == 36) }
        for own in stage.exchange.upstream.requests { #expect(own.fields["X-Mirrored"] == nil) }
        await stage.until { stage.count("answered") == 2 && stage.inFlight == 0 }
    }

    @Test(arguments: [1.0, 0.0] as [Ratio])
    func `a client's own mark never reaches the origin server`(ratio: Ratio) async throws {
        let stage = try Stage(Mirror(service: "shadow", ratio: ratio, header: "X-Mirrored"))
        let fields: HttpFields = ["X-Mirrored": "forged", "x-mirrored": "twice", "X-Other": "1"]
        _ = try await stage.exchange.send(.get("/", fields: fields))
        _ = try await stage.exchange.send(.post("/", fields: fields, content: .bytes(count: 10)))
        for own in stage.exchange.upstream.requests {
            #expect((own.fields["X-Mirrored"], own.fields["X-Other"]) == (nil, "1"))
        }
        guard ratio.value == 1 else { return }
        await stage.shadow.untilAsked(2)
        for copy in stage.shadow.upstream.requests {
            #expect(copy.fields.values(of: "X-Mirrored").count == 1 && copy.fields["X-Mirrored"] != "forged")
        }
    }

    @Test func `a service that never answers delays nothing, and holds no more than maxInFlight copies`() async throws {
        let stage = try Stage(Mirror(service: "shadow", maxInFlight: 2))
        for _ in 0..<2 { stage.shadow.upstream.neverRespond() }
        for _ in 0..<5 { #expect(try await stage.exchange.send(.get("/")).status == .ok) }
        await stage.shadow.untilAsked(2)
        #expect((stage.inFlight, stage.count("dropped")) == (2, 3))
        await stage.exchange.advance(by: .seconds(61))
        await stage.until { stage.inFlight == 0 }
        #expect(stage.count("failed") == 2)
        #expect(try await stage.exchange.send(.get("/")).status == .ok)
        await stage.shadow.untilAsked(3)
    }

    @Test func `a service that is down, breaks off or sends without end does no harm`() async throws {
        let stage = try Stage(Mirror(service: "shadow", maxBody: .kibibytes(64), compare: .init()))
        stage.shadow.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 20 << 20)))
        #expect(try await stage.exchange.send(.get("/")).status == .ok)
        await stage.until { stage.count("answered") == 1 && stage.inFlight == 0 }
        stage.shadow.upstream.refuse()
        #expect(try await stage.exchange.send(.get("/")).status == .ok)
        await stage.until { stage.count("failed") == 1 && stage.inFlight == 0 }
        #expect(stage.differences == 0)
    }

    @Test func `an unknown service, larger content and ratio leave requests uncopied`() async throws {
        let unknown = try Stage(Mirror(service: "other"))
        _ = try await unknown.exchange.send(.get("/"))
        #expect((unknown.count("skipped"), unknown.inFlight) == (1, 0))
        let small = try Stage(Mirror(service: "shadow", maxBody: .bytes(10)))
        for count in [10, 11, 200_000] { _ = try await small.exchange.send(.post("/", content: .bytes(count: count))) }
        var streamed = HttpRequest.post("/", content: .bytes(count: 200_000))
        streamed.content.extent = .unknown
        _ = try await small.exchange.send(streamed)
        await small.shadow.untilAsked(1)
        #expect(small.count("skipped") == 3)
        #expect(small.shadow.upstream.requests.map { $0.content.bytes?.count } == [10])
        let none = try Stage(Mirror(service: "shadow", ratio: 0.0))
        for _ in 0..<20 { _ = try await none.exchange.send(.get("/")) }
        #expect(none.shadow.upstream.requests.isEmpty)
    }

    @Test func `a request that is sent again is copied once`() async throws {
        let retry = Retry(retryOn: FailureSet([], statuses: [503]), methods: [.post], backoff: .zero ... .zero)
        let stage = try Stage(Mirror(service: "shadow"), before: [retry])
        stage.exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await stage.exchange.send(.post("/", content: .text("abc"))).status == .ok)
        await stage.until { stage.count("answered") == 1 }
        #expect(stage.exchange.upstream.requests.count == 2)
        #expect(stage.shadow.upstream.requests.map(\.content.text) == ["abc"])
    }

    // MARK: Comparing

    private func compare(
        _ own: HttpResponse, _ copy: HttpResponse, ignoring fields: [FieldName] = [], _ pointers: [String] = [],
        areLong: Bool = false
    ) async throws -> (differences: Int, note: String?) {
        let rules = Mirror.Comparing(ignoring: fields, pointers.compactMap { JsonPointer($0) })
        let stage = try Stage(Mirror(service: "shadow", compare: rules))
        stage.exchange.upstream.respond(with: own)
        stage.shadow.upstream.respond(with: copy)
        let answer = try await stage.exchange.send(.get("/"))
        #expect(answer.content.bytes == own.content.bytes)
        // The second exchange's comparison comes behind that of the first, so that of the first has been made.
        await stage.until { stage.count("answered") == 1 }
        for _ in 0..<10 { await stage.exchange.advance(by: .zero) }
        // They are compared on another thread.
        if areLong { await stage.until { stage.differences == 1 } }
        return (stage.differences, stage.note)
    }

    private func json(_ text: String, _ fields: HttpFields = [:]) throws -> HttpResponse {
        var response = HttpResponse(.ok, fields: fields, content: .text(text))
        try response.fields.set(.contentType, to: "application/json")
        return response
    }

    @Test func `equal responses have no difference, whatever the order of members`() async throws {
        let one = try json(#"{"a":1,"b":[1,2.0]}"#, ["Date": "Thu, 01 Jan 2026 00:00:00 GMT", "X-A": "1"])
        let other = try json(#"{ "b": [1, 2], "a": 1e0 }"#, ["X-A": "1"])
        let (differences, note) = try await compare(one, other)
        #expect(differences == 0)
        #expect(note == "mirrored")
    }

    @Test func `differences are counted, and the record names them`() async throws {
        var copy = try json(#"{"a":2,"c":{"d/e":[1]}}"#, ["X-A": "2"])
        copy.status = .created
        let (differences, note) = try await compare(
            try json(#"{"a":1,"b":1,"c":{"d/e":[1,2]}}"#, ["X-A": "1", "X-B": "1"]), copy)
        #expect(differences == 1)
        #expect(
            note
                == "mirrored, the copy differs in status (200, 201), field x-a, field x-b, /a, /b, /c/d~1e/1")
    }

    @Test func `long content is compared as short content is`() async throws {
        let items = (0..<20_000).map { "{\"id\":\($0)}" }.joined(separator: ",")
        let (differences, note) = try await compare(
            try json("{\"items\":[\(items)],\"a\":1}"), try json("{\"a\":2,\"items\":[\(items)]}"),
            areLong: true)
        #expect(differences == 1)
        #expect(note == "mirrored, the copy differs in /a")
    }

    @Test func `ignored members may differ`() async throws {
        let (differences, _) = try await compare(
            try json(#"{"time":1,"items":[{"id":1,"etag":"a"}]}"#, ["Server": "a"]),
            try json(#"{"items":[{"id":1,"etag":"b"}]}"#, ["Server": "b"]), ignoring: ["Server"],
            ["/time", "/items/*/etag"])
        #expect(differences == 0)
    }

    @Test func `content that is not JSON is compared by its bytes, without codings`() async throws {
        var coded = HttpResponse(
            .ok, fields: ["Content-Encoding": "gzip"], content: .bytes(try CodedText.encode("text", .gzip)))
        #expect(
            try await compare(HttpResponse(.ok, content: .text("text")), coded).note
                == "mirrored, the copy differs in field content-encoding")
        coded.fields.remove(.contentEncoding as FieldName)
        #expect(
            try await compare(HttpResponse(.ok, content: .text("text")), HttpResponse(.ok, content: .text("other")))
                .note
                == "mirrored, the copy differs in content")
    }

    // MARK: Options

    @Test(
        arguments: [
            ([:], "mirror.service: is missing, and there is no default"),
            (
                ["header": "Content-Length"],
                "mirror.header: Content-Length frames the message or concerns one connection; write another field"
            ),
            (["service": "a"], "mirror.service: there is no \"a\" under services; define it under services"),
        ] as [(ConfigNode, String)])
    func `wrong options are refused at load`(options: ConfigNode, message: String) {
        var reader = OptionsReader(options, keyPath: "mirror")
        _ = Mirror(options: &reader)
        #expect(reader.finish().contains { "\($0.keyPath): \($0.message)" == message })
    }
}
