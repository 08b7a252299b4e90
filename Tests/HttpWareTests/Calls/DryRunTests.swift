import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct DryRunTests {
    private let notes = Notes()

    private struct OneRoute: ExchangeRouter {
        let plan: ExchangePlan
        let listenerPlan = ExchangePlan(chain: .empty, service: nil, route: nil)

        func plan(
            for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
        ) -> ExchangePlan { plan }
    }

    private func run(
        _ lines: [String], _ middlewares: [ChainEntry], _ postwares: [ChainEntry] = [], isPassthrough: Bool = false,
        change: (inout DryRun.Setting) -> Void = { _ in }
    ) throws -> DryRun {
        var setting = DryRun.Setting(name: "test")
        change(&setting)
        let endpoint = Endpoint(host: "192.0.2.1", port: 81, basePath: "/base")
        let service = UpstreamService(
            name: "origin", endpoints: isPassthrough ? [] : [endpoint], isPassthrough: isPassthrough,
            defaults: [try FieldLine("X-Default", "yes")])
        let chain = try WareChain(middlewares: middlewares, postwares: postwares)
        return try DryRun(
            lines, setting: setting, router: OneRoute(plan: ExchangePlan(chain: chain, service: service, route: "one")))
    }

    private let get = ["GET /a?b=1 HTTP/1.1", "Host: example.test", "X-Given: 1"]

    @Test func `the head is the one that would be sent`() throws {
        let run = try run(get, [])
        #expect(run.destination == "192.0.2.1:81")
        #expect(
            run.head == [
                "GET /base/a?b=1 HTTP/1.1", "Host: 192.0.2.1:81", "X-Given: 1", "X-Default: yes", "Via: 1.1 httpware",
            ])
        #expect(run.response == nil && run.isRouted && run.plan.route == "one")
    }

    @Test func `changes of a middleware are reported`() throws {
        let edits = OnRequest { request, _ in
            try request.fields.set("X-New", to: "2")
            request.fields.remove("X-Given")
            try request.setPath("/c")
            return .pass
        }
        let run = try run(get, [ChainEntry(edits), ChainEntry(OnRequest { _, _ in .pass })])
        #expect(run.middlewares[0].added == ["X-New: 2"])
        #expect(run.middlewares[0].removed == ["X-Given: 1"])
        #expect(run.middlewares[0].target == "GET /c?b=1")
        #expect(run.middlewares[1].added.isEmpty && run.middlewares[1].target == nil)
        #expect(run.head.first == "GET /base/c?b=1 HTTP/1.1")
    }

    @Test func `a ware that would wait is not waited for, and counts as if it passed`() throws {
        let waits = OnRequest { [notes] _, _ in
            .wait { _, _ in
                notes.add("waited")
                return .pass
            }
        }
        let run = try run(get, [ChainEntry(waits), ChainEntry(OnRequest.noting("behind", in: notes))])
        guard case .waits = run.middlewares[0].decision, case .passed = run.middlewares[1].decision else {
            Issue.record("\(run.middlewares)")
            return
        }
        #expect(notes.all == ["behind request"])
        #expect(run.destination != nil)
    }

    @Test func `an answer ends the way, and neither response halves, postwares nor observers are asked`() throws {
        struct Ends: Middleware, Postware, ExchangeObserver {
            let notes: Notes
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                exchange.onEnd { _ in notes.add("end closure") }
                return .pass
            }
            func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
                notes.add("response half")
                return .pass
            }
            func ended(_ exchange: Exchange) { notes.add("ended") }
        }
        let answers = OnRequest { _, _ in .abort(with: HttpResponse(.noContent, fields: ["X-A": "1"])) }
        let entries = [
            ChainEntry(Ends(notes: notes)), ChainEntry(answers, label: "answers"), ChainEntry(Ends(notes: notes)),
        ]
        for middlewares in [entries, [entries[0]]] {
            let run = try run(get, middlewares, [ChainEntry(OnResponse.noting("post", in: notes))])
            #expect(notes.all.isEmpty)
            guard middlewares.count == 3 else { continue }
            #expect(run.destination == nil)
            #expect(run.response?.status == .noContent && run.response?.fields["X-A"] == "1")
            #expect(run.responder == .ware("answers"))
            guard case .answered = run.middlewares[1].decision, case .notReached = run.middlewares[2].decision else {
                Issue.record("\(run.middlewares)")
                return
            }
        }
    }

    @Test func `a ware that throws ends the way, unless it fails open`() throws {
        struct Broken: Error {}
        for failsOpen in [false, true] {
            let run = try run(get, [ChainEntry(OnRequest(failsOpen: failsOpen) { _, _ in throw Broken() })])
            guard case .failed("Broken()") = run.middlewares[0].decision else {
                Issue.record("\(run.middlewares)")
                return
            }
            #expect(run.response?.status == (failsOpen ? nil : .internalServerError))
            #expect((run.destination != nil) == failsOpen)
        }
    }

    @Test func `conditions are judged as far as the request decides them`() throws {
        func entry(_ change: (inout ConditionOptions) throws -> Void) rethrows -> ChainEntry {
            var options = ConditionOptions()
            try change(&options)
            return ChainEntry(OnResponse.noting("p", in: notes), condition: Condition(options))
        }
        var isPost = ConditionOptions()
        isPost.request.methods = [.post]
        let run = try run(
            get, [ChainEntry(OnRequest.noting("m", in: notes), condition: Condition(isPost))],
            [
                entry { $0.request.methods = [.get] }, entry { $0.request.methods = [.post] },
                try entry { $0.statuses = try StatusSet(optionText: "5xx") },
                try entry {
                    $0.request.methods = [.post]
                    $0.statuses = try StatusSet(optionText: "5xx")
                },
            ])
        guard case .skipped = run.middlewares[0].decision else {
            Issue.record("\(run.middlewares)")
            return
        }
        #expect(notes.all.isEmpty)
        #expect(run.postwares.map { "\($0)" } == ["runs", "doesNotRun", "dependsOnResponse", "doesNotRun"])
    }

    @Test(arguments: ["GET /%00 HTTP/1.1", "GET /a b HTTP/1.1", "GET / HTTP/1.1\r\nX-A: 1"])
    func `a request that the gateway would refuse is refused`(line: String) throws {
        let run = try run([line, "Host: a", "Host: b"], [ChainEntry(OnRequest.noting("m", in: notes))])
        #expect(run.response?.status == .badRequest)
        #expect(run.request == nil && !run.isRouted && run.middlewares.isEmpty && run.destination == nil)
        #expect(notes.all.isEmpty)
    }

    @Test func `CONNECT opens a tunnel to where it may go`() throws {
        let forward: (inout DryRun.Setting) -> Void = { $0.settings.isForward = true }
        let open = try run(
            ["CONNECT a.test:443 HTTP/1.1", "Host: a.test:443"], [], isPassthrough: true, change: forward)
        #expect(open.destination == "a.test:443" && open.head.isEmpty && open.isAddressJudged)
        let port = try run(["CONNECT a.test:25 HTTP/1.1", "Host: a.test:25"], [], isPassthrough: true, change: forward)
        #expect(port.destination == nil && port.response?.status == .forbidden)
        let inner = try run(
            ["CONNECT 10.0.0.1:443 HTTP/1.1", "Host: 10.0.0.1:443"], [], isPassthrough: true, change: forward)
        #expect(inner.destination == nil && inner.failure?.fault == .destinationProhibited)
    }
}
