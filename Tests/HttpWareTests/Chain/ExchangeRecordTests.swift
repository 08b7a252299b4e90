import Foundation
import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct ExchangeRecordTests {
    private let ring = RecordRing(mostRecords: 16, mostBytes: .mebibytes(1))

    private func exchange(_ middlewares: [any Ware], _ postwares: [any Ware] = []) throws -> TestExchange {
        var setting = TestExchange.Setting()
        setting.records = ring
        func entries(_ wares: [any Ware], _ prefix: String) -> [ChainEntry] {
            wares.enumerated().map { ChainEntry($0.element, label: "\(prefix)\($0.offset)") }
        }
        return try TestExchange(
            chain: WareChain(middlewares: entries(middlewares, "m"), postwares: entries(postwares, "p")),
            setting: setting)
    }

    private func last() throws -> ExchangeReport { ExchangeReport(try #require(ring.recent(1).first)) }

    // MARK: Decisions

    @Test func `an exchange that no observer watches has no steps`() async throws {
        let exchange = try TestExchange([OnRequest { _, _ in .pass }])
        _ = try await exchange.send(.get("/"))
        #expect(try #require(exchange.outcomes.first).record.wares.isEmpty)
    }

    @Test func `each ware's decision is told with its status`() async throws {
        let exchange = try exchange(
            [
                OnRequest { _, _ in .pass },
                OnBoth.replaying(.unauthorized),
                OnRequest(failsOpen: true) { _, _ in throw GatewayError(.gateway, .internalError, "broken") },
            ], [OnResponse { _, _ in .replace(with: HttpResponse(.gone)) }])
        exchange.upstream.respond(with: HttpResponse(.unauthorized))
        _ = try await exchange.send(.get("/"))
        let report = try last()
        #expect(
            report.wares.map { "\($0.attempt) \($0.ware) \($0.side) \($0.text)" } == [
                "1 m0 request passed", "1 m1 request passed", "1 m2 request failed",
                "1 m1 responseHalf replayed after 401", "2 m2 request failed", "2 m1 responseHalf passed",
                "2 p0 postware replaced 410",
            ])
        #expect(report.replays == 1)
        #expect(report.status == 410)
        #expect(report.responder == "p0")
    }

    @Test func `a ware that waits is held for that long, and an abort tells its status`() async throws {
        let exchange = try exchange([
            OnRequest { _, exchange in
                .wait { _, exchange in
                    try await exchange.sleep(for: .milliseconds(212))
                    exchange.note("behind refresh 7")
                    return .pass
                }
            },
            OnRequest { _, _ in .wait { _, _ in .abort(with: HttpResponse(.unauthorized)) } },
        ])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .milliseconds(212))
        _ = try await pending.response()
        let report = try last()
        #expect(report.wares.map(\.text) == ["held 212ms behind refresh 7", "aborted 401"])
        #expect(report.wares.map(\.decision) == ["held", "aborted"])
        #expect(report.wares.first?.duration == 212)
        #expect(report.duration == 212)
        #expect(report.responder == "m1")
    }

    @Test func `a ware names its decision, and its words cost nothing unless an observer watches`() async throws {
        let cache = OnRequest { _, exchange in
            exchange.note("from the store")
            exchange.note("hit", asDecision: true)
            return .abort(with: HttpResponse(.ok))
        }
        let exchange = try exchange([cache])
        _ = try await exchange.send(.get("/"))
        #expect(try last().wares.map(\.text) == ["from the store, hit"])

        let silent = try TestExchange([
            OnRequest { _, exchange in
                exchange.note(
                    {
                        Issue.record("made for nobody"); return ""
                    }())
                return .pass
            }
        ])
        _ = try await silent.send(.get("/"))
    }

    @Test func `a note is one short line, whatever it holds`() async throws {
        let exchange = try exchange([
            OnRequest { _, exchange in
                exchange.note("a\r\nb" + String(repeating: "c", count: 10_000))
                return .pass
            }
        ])
        _ = try await exchange.send(.get("/"))
        let text = try #require(try last().wares.first).text
        #expect(text.hasPrefix("passed a  bc"))
        #expect(text.utf8.count < 300)
    }

    @Test func `a ware whose condition does not hold is skipped`() async throws {
        var setting = TestExchange.Setting()
        setting.records = ring
        var options = ConditionOptions()
        options.request.methods = [.post]
        let chain = try WareChain(
            middlewares: [
                ChainEntry(OnRequest { _, _ in .pass }, label: "only for POST", condition: Condition(options))
            ], postwares: [])
        _ = try await TestExchange(chain: chain, setting: setting).send(.get("/"))
        #expect(try last().wares.map(\.text) == ["skipped"])
    }

    @Test func `a wait that the client does not wait for is given up`() async throws {
        let exchange = try exchange([
            OnRequest { _, _ in
                .wait { _, exchange in
                    try await exchange.sleep(for: .seconds(60))
                    return .pass
                }
            }
        ])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .seconds(3))
        await pending.leave()
        let report = try last()
        #expect(report.wares.map(\.text) == ["gave up after 3.0s"])
        #expect(report.status == 499)
        #expect(report.end == "clientLeft")
        #expect(report.fault == "clientLeft")
    }

    // MARK: Changes

    @Test func `changes by a ware are shown as the names of the fields`() async throws {
        let exchange = try exchange(
            [
                OnRequest { request, _ in
                    try request.fields.append("X-New", "1")
                    request.fields.remove("x-old")
                    try request.fields.set("accept", to: "text/plain")
                    return .pass
                },
                OnRequest { _, _ in .pass },
                OnRequest { request, _ in
                    request.fields.rename("X-New", to: "X-Newer")
                    try request.fields.append("X-Passing", "1")
                    request.fields.remove("X-Passing")
                    return .pass
                },
            ],
            [
                OnResponse { response, _ in
                    response.status = .accepted
                    try response.fields.append("X-Seen", "yes")
                    return .pass
                }
            ])
        _ = try await exchange.send(.get("/", fields: ["X-Old": "1", "Accept": "*/*"]))
        let wares = try last().wares
        try #require(wares.count == 4)
        #expect(wares[0].added == ["X-New"])
        #expect(wares[0].removed == ["X-Old"])
        #expect(wares[0].rewritten == ["accept"])
        #expect(wares[1].added == nil && wares[1].removed == nil && wares[1].rewritten == nil)
        #expect(wares[2].added == ["X-Newer"])
        #expect(wares[2].removed == ["X-New"])
        #expect(wares[3].added == ["X-Seen"])
        #expect(wares[3].status == 202)
    }

    @Test func `another method, target and set of fields are told`() async throws {
        let exchange = try exchange([
            OnRequest { request, _ in
                request.method = .put
                try request.setPath("/b")
                try request.setQuery("access_token=abc&page=2")
                return .pass
            },
            OnRequest { request, _ in
                request.fields = ["Host": "example.com"]
                return .pass
            },
            OnRequest { request, _ in
                request.setAuthority(try #require(Authority("other.example:81")))
                return .pass
            },
        ])
        _ = try await exchange.send(.get("/a", fields: ["X-A": "1", "X-B": "2", "Host": "example.com"]))
        let report = try last()
        #expect(report.method == "GET")
        #expect(report.target == "/a")
        #expect(report.wares[0].method == "PUT")
        #expect(report.wares[0].target == "/b?access_token=…&page=2")
        #expect(report.wares[1].replacedFields == true)
        #expect(report.wares[2].target == "//other.example:81/b?access_token=…&page=2")
    }

    @Test func `a replayed request's changes are those of each attempt`() async throws {
        let exchange = try exchange([
            OnBoth.replaying(.unauthorized),
            OnRequest { request, _ in
                try request.fields.set("X-Token", to: "1")
                return .pass
            },
        ])
        exchange.upstream.respond(with: HttpResponse(.unauthorized))
        _ = try await exchange.send(.get("/"))
        #expect(try last().wares.filter { $0.ware == "m1" }.map(\.added) == [["X-Token"], ["X-Token"]])
    }

    @Test func `a thousand changes are cut, and the record says so`() async throws {
        let exchange = try exchange([
            OnRequest { request, _ in
                for number in 0..<3000 {
                    try request.fields.append("X-Many", "\(number)")
                    request.fields.remove("X-Many")
                }
                for number in 0..<1100 { try request.fields.append("X-More", "\(number)") }
                return .abort(with: HttpResponse(.ok))
            }
        ])
        _ = try await exchange.send(.get("/"))
        let report = try last()
        #expect(report.cut)
        #expect(report.wares.first?.added == ["X-More"])
    }

    // MARK: The whole

    @Test func `the report says where the request went and how long each phase took`() async throws {
        let exchange = try exchange([])
        await exchange.advance(by: .seconds(1))  // 0 would say that it did not come to that
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("hello")))
        _ = try await exchange.send(.post("/upload?key=abc", content: .text("four")))
        let report = try last()
        #expect(report.endpoint == "127.0.0.1:\(exchange.upstream.port)")
        #expect(report.service == "upstream")
        #expect(report.route == "test")
        #expect(report.listener == "test")
        #expect(report.client == "203.0.113.7")
        #expect(report.method == "POST")
        #expect(report.target == "/upload?key=…")
        #expect(report.requestBytes == 4)
        #expect(report.responseBytes == 5)
        #expect(report.time == "2026-01-01T00:00:01.000000Z")
        #expect(report.phases.map(\.phase) == ["dns", "connect", "send", "firstByte", "content"])
        #expect(!report.reused)
        _ = try await exchange.send(.get("/"))
        let second = try last()
        #expect(second.reused)
        #expect(second.phases.map(\.phase) == ["send", "firstByte", "content"])
        #expect(second.attempts == 1)
    }

    @Test func `an endpoint that refuses connections is named, with the fault`() async throws {
        let exchange = try exchange([])
        await exchange.advance(by: .seconds(1))
        exchange.upstream.refuse()
        while (try? await exchange.send(.get("/")))?.status != .badGateway {}
        let report = try last()
        #expect(report.fault == "connectionRefused")
        #expect(report.reason?.isEmpty == false)
        #expect(report.endpoint == "127.0.0.1:\(exchange.upstream.port)")
        #expect(report.responder == "gateway")
        #expect(report.phases.map(\.phase) == ["connect"])
    }

    @Test func `JSON is read back as what it was made from`() async throws {
        let exchange = try exchange([
            OnRequest { request, exchange in
                exchange.id = "an \"id\" \u{1}"
                try request.fields.set("X-A", to: "1")
                exchange.note("says \"so\"\\")
                return .pass
            }
        ])
        _ = try await exchange.send(.get("/%ff?q='\\"))
        let report = try last()
        let read = try JSONDecoder().decode(ExchangeReport.self, from: Data(report.json.utf8))
        #expect(read == report)
        #expect(!report.json.contains("\n"))
    }
}
