import Capturing
import Foundation
import HttpWareTesting
import Testing

@testable import GatewayWares
@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct AskTests {
    private let desk = Questions()
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private var path: String { folder.appendingPathComponent("approvals.yaml").path }

    private func ask(_ edit: (inout Ask) -> Void = { _ in }, approvals: ApprovalFile? = nil) -> Ask {
        var ask = Ask(approvals: approvals, desk: desk)
        edit(&ask)
        return ask
    }

    private func exchange(
        _ ask: Ask, peer: String = "203.0.113.7:50000", clock: ManualClock = ManualClock()
    ) throws -> TestExchange {
        var setting = TestExchange.Setting()
        setting.clock = clock
        setting.peer = SocketAddress(peer)
        return try TestExchange(
            chain: try WareChain(middlewares: [ChainEntry(ask, label: "ask")], postwares: []), setting: setting)
    }

    /// The open question about a path, as soon as that many requests wait for its answer.
    private func question(_ path: String, waiting: Int = 1) async -> Question {
        while true {
            if let found = desk.all.first(where: { $0.subject.url.hasSuffix(path) && desk.waiting($0) == waiting }) {
                return found
            }
            await Task.yield()
        }
    }

    private func answer(_ question: Question, _ isYes: Bool, for span: Question.Span = .once) throws {
        try desk.answer(
            question, isYes: isYes, for: span, at: LoopInstant(nanoseconds: 0), wall: WallTime(seconds: 1_800_000_000))
    }

    private func post(_ path: String = "/orders", _ content: String = "a", _ fields: [(FieldName, String)] = []) throws
        -> HttpRequest
    {
        var request = HttpRequest.post(path, content: .text(content))
        try request.fields.set("Content-Type", to: "text/plain")
        for (name, value) in fields { try request.fields.set(name, to: value) }
        return request
    }

    // MARK: Answers

    @Test(arguments: [true, false])
    func `a request waits, and goes on or is refused as a person says`(isYes: Bool) async throws {
        let exchange = try exchange(ask())
        let pending = await exchange.start(try post())
        let question = await question("/orders")
        #expect(exchange.upstream.requests.isEmpty)
        #expect(question.subject.text == "a" && question.subject.isWhole && question.subject.method == "POST")
        try answer(question, isYes)
        #expect(try await pending.response().status == (isYes ? .ok : .forbidden))
        #expect(exchange.upstream.requests.map(\.content.text) == (isYes ? ["a"] : []))
        #expect(desk.all.isEmpty && desk.find(question.id) == nil)
    }

    @Test(arguments: [Ask.WithoutAnswer.deny, .allow])
    func `without an answer the time decides, and a later answer is refused`(end: Ask.WithoutAnswer) async throws {
        let exchange = try exchange(ask { $0.onTimeout = end })
        let pending = await exchange.start(try post())
        let question = await question("/orders")
        await exchange.advance(by: .seconds(299))
        #expect(desk.find(question.id) != nil)
        await exchange.advance(by: .seconds(2))
        #expect(try await pending.response().status == (end == .allow ? .ok : .forbidden))
        #expect(throws: Questions.Refusal.self) { try answer(question, true) }
    }

    @Test func `a client that leaves ends its question`() async throws {
        let exchange = try exchange(ask())
        let pending = await exchange.start(try post())
        let question = await question("/orders")
        await pending.leave()
        while desk.find(question.id) != nil { await Task.yield() }
        #expect(throws: Questions.Refusal.self) { try answer(question, true) }
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `equal requests at the same time are one question`() async throws {
        let ask = ask()
        let exchanges = [try exchange(ask), try exchange(ask)]
        let first = await exchanges[0].start(try post())
        let one = await question("/orders")
        let second = await exchanges[1].start(try post())
        let both = await question("/orders", waiting: 2)
        #expect(one.id == both.id && desk.all.count == 1)
        await first.leave()
        let left = await question("/orders", waiting: 1)
        try answer(left, true)
        #expect(try await second.response().status == .ok)
    }

    // MARK: What an answer is bound to

    @Test func `an answer for the run counts for equal requests, and a changed one asks again`() async throws {
        let ask = ask()
        let same = try exchange(ask)
        let pending = await same.start(try post())
        try answer(await question("/orders"), true, for: .run)
        _ = try await pending.response()
        #expect(try await same.send(try post()).status == .ok)
        // A field that does not matter.
        #expect(try await same.send(try post("/orders", "a", [("X-Other", "1")])).status == .ok)
        var put = try post()
        put.method = .put
        let changed = [
            put, try post("/orders?a=1"), try post("/orders", "b"), try post("/orders", ""),
            try post("/orders", "a", [("Content-Type", "application/json")]),
        ]
        for request in changed {
            let exchange = try exchange(ask)
            let pending = await exchange.start(request)
            while desk.all.isEmpty { await Task.yield() }
            try answer(desk.all[0], false)
            #expect(try await pending.response().status == .forbidden)
        }
        let other = try exchange(ask, peer: "203.0.113.8:50000")
        let asked = await other.start(try post())
        try answer(await question("/orders"), false)
        #expect(try await asked.response().status == .forbidden)
    }

    @Test func `an answer for a duration ends with it`() async throws {
        let clock = ManualClock()
        let exchange = try exchange(ask(), clock: clock)
        let pending = await exchange.start(try post())
        let question = await question("/orders")
        try desk.answer(
            question, isYes: true, for: .lasting(.seconds(600)), at: clock.now(), wall: WallTime(seconds: 0))
        _ = try await pending.response()
        #expect(try await exchange.send(try post()).status == .ok)
        await exchange.advance(by: .seconds(601))
        let again = await exchange.start(try post())
        try answer(await self.question("/orders"), false)
        #expect(try await again.response().status == .forbidden)
    }

    @Test func `content that is not known to its end is allowed only once`() async throws {
        let exchange = try exchange(ask(approvals: .at(path)))
        let pending = await exchange.start(try post("/large", String(repeating: "x", count: 100_000)))
        let question = await question("/large")
        #expect(question.spans == [.once] && !question.subject.isWhole)
        #expect(question.subject.text.map { $0.utf8.count <= Question.Subject.mostShown } == true)
        #expect(throws: Questions.Refusal.self) { try answer(question, true, for: .run) }
        #expect(throws: Questions.Refusal.self) { try answer(question, true, for: .always) }
        try answer(question, true)
        _ = try await pending.response()
        #expect(exchange.upstream.requests.first?.content.bytes?.count == 100_000)
    }

    @Test func `requests whose content is not known to its end are questions of their own`() async throws {
        let ask = ask()
        let exchanges = [try exchange(ask), try exchange(ask)]
        let beginning = String(repeating: "x", count: 20_000)
        let first = await exchanges[0].start(try post("/deploy", beginning + "1"))
        _ = await question("/deploy")
        let second = await exchanges[1].start(try post("/deploy", beginning + "2"))
        while desk.all.count < 2 { await Task.yield() }
        try answer(desk.all[0], true)
        #expect(try await first.response().status == .ok)
        try answer(desk.all[0], false)
        #expect(try await second.response().status == .forbidden)
    }

    @Test(arguments: [
        ("Authorization", "Bearer other"), ("X-Api-Key", "other"), ("Cookie", "sid=other"), ("X-Auth-Token", "other"),
        ("Destination", "/prod"), ("X-HTTP-Method-Override", "DELETE"), ("Range", "bytes=0-1"), ("If-Match", "\"a\""),
    ])
    func `an answer does not count for another credential, or for a field that changes the meaning`(
        name: String, value: String
    ) async throws {
        let exchange = try exchange(ask())
        let pending = await exchange.start(try post())
        try answer(await question("/orders"), true, for: .run)
        _ = try await pending.response()
        let again = await exchange.start(try post("/orders", "a", [(try #require(FieldName(name)), value)]))
        try answer(await question("/orders"), false)
        #expect(try await again.response().status == .forbidden)
    }

    @Test func `a ware that remembers nothing does not use answers that others remember`() async throws {
        let exchange = try exchange(ask())
        let pending = await exchange.start(try post())
        try answer(await question("/orders"), true, for: .run)
        _ = try await pending.response()
        let other = try self.exchange(ask { $0.remember = [.once] })
        let asked = await other.start(try post())
        try answer(await question("/orders"), false)
        #expect(try await asked.response().status == .forbidden)
    }

    @Test func `a span that the file does not allow is refused`() async throws {
        let exchange = try exchange(ask { $0.remember = [.once] })
        let pending = await exchange.start(try post())
        let question = await question("/orders")
        for span in [Question.Span.run, .always, .lasting(.seconds(1))] {
            #expect(throws: Questions.Refusal.self) { try answer(question, true, for: span) }
        }
        try answer(question, true)
        #expect(try await pending.response().status == .ok)
    }

    @Test func `a thousand requests wait, and the next one is refused`() async throws {
        let ask = ask()
        let exchange = try exchange(ask)
        var waiting: [TestExchange.Pending] = []
        for number in 0..<1000 { waiting.append(await exchange.start(try post("/\(number)"))) }
        while desk.all.count < 1000 { await Task.yield() }
        #expect(try await exchange.send(try post("/more")).status == .serviceUnavailable)
        for question in desk.all { try answer(question, true) }
        for pending in waiting { #expect(try await pending.response().status == .ok) }
        #expect(desk.all.isEmpty)
        let pending = await exchange.start(try post("/more"))
        try answer(await question("/more"), true)
        #expect(try await pending.response().status == .ok)
    }

    // MARK: The file of approvals

    @Test func `an answer that always counts outlives the gateway, until its line is removed`() async throws {
        let first = try exchange(ask(approvals: .at(path)))
        let pending = await first.start(try post())
        try answer(await question("/orders"), true, for: .always)
        _ = try await pending.response()
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains(#"- {"answer":"yes","who":"203.0.113.7","what":"POST http://"#))
        // A gateway that is started again knows no answers but those in the file.
        let again = Ask(approvals: .at(path), desk: Questions())
        #expect(try await exchange(again).send(try post()).status == .ok)
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("-") }
        try lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
        let asked = try exchange(ask(approvals: .at(path)))
        await asked.advance(by: .seconds(2))
        let late = await asked.start(try post())
        try answer(await question("/orders"), false, for: .always)
        #expect(try await late.response().status == .forbidden)
        #expect(try await asked.send(try post()).status == .forbidden)
        let id = try #require(ApprovalFile.at(path).approvals.first?.id)
        #expect(try ApprovalFile.at(path).remove(id) == 1)
        #expect(ApprovalFile.at(path).approvals.isEmpty)
    }

    @Test func `while the file has a mistake no answer in it counts, and it is not written over`() async throws {
        let approval = Approval(
            Question.Subject(key: Digest256(of: ["a"])), isYes: true, at: WallTime(seconds: 0))
        try ApprovalFile.at(path).add(approval)
        #expect(ApprovalFile.at(path).answer(to: approval.key, at: LoopInstant(nanoseconds: 0)) == true)
        let text = try String(contentsOfFile: path, encoding: .utf8) + "- nonsense\n"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        #expect(ApprovalFile.at(path).answer(to: approval.key, at: LoopInstant(nanoseconds: 2_000_000_000)) == nil)
        #expect(throws: SystemError.self) { try ApprovalFile.at(path).add(approval) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        // A file that is removed has no mistake any more.
        try FileManager.default.removeItem(atPath: path)
        try ApprovalFile.at(path).add(approval)
        #expect(ApprovalFile.at(path).approvals == [approval])
    }

    @Test(arguments: [
        ("- a", 1), ("# a\n\n- {\"answer\": \"maybe\"}", 3), ("{}", 1), ("- {}", 1), ("- [1]", 1),
        ("- {\"answer\":\"yes\",\"who\":\"a\",\"what\":\"b\",\"at\":\"c\",\"hash\":\"0\"}", 1),
        (
            "- {\"answer\":\"yes\",\"who\":\"a\",\"what\":\"b\",\"at\":\"c\",\"hash\":\"\(String(repeating: "0", count: 64))\",\"more\":1}",
            1
        ),
        ("-\t{}", 1), ("- " + String(repeating: "[", count: 100_000), 1), ("\u{0}", 1),
    ])
    func `a file that is not one of approvals is refused with its line`(text: String, line: Int) throws {
        let mistake = #expect(throws: ApprovalFile.Mistake.self) { try ApprovalFile.read(Array(text.utf8)) }
        #expect(mistake?.line == line)
    }

    @Test func `a file that others may write, and a link, do not count`() throws {
        let approval = Approval(Question.Subject(key: Digest256(of: ["a"])), isYes: true, at: WallTime(seconds: 0))
        let file = ApprovalFile.at(path)
        try file.add(approval)
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
        try Data(contentsOf: URL(filePath: path)).write(to: URL(filePath: path + ".copy"))
        #expect(throws: (any Error).self) { try ApprovalFile.content(of: path) }
        #expect(ApprovalFile.problem(of: path)?.contains("only this user") == true)
        let link = path + ".link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path + ".copy")
        #expect(ApprovalFile.problem(of: link) != nil)
    }

    @Test func `the file stays within the size that is read`() throws {
        let url = "http://a/" + String(repeating: "x", count: 8000)
        let subject = Question.Subject(key: Digest256(of: ["a"]), url: url)
        let approval = Approval(subject, isYes: true, at: WallTime(seconds: 0))
        #expect(approval.what.utf8.count < 600 && approval.line.utf8.count < 1000)
    }

    @Test func `a configuration with a file that has a mistake is refused`() throws {
        try "- a\n".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(throws: (any Error).self) {
            try TestExchange.make(Ask.self, ["file": ConfigNode(.scalar(path, isQuoted: true))])
        }
        #expect(throws: (any Error).self) {
            try TestExchange.make(Ask.self, ["file": ConfigNode(.scalar(path, isQuoted: true)), "remember": ["run"]])
        }
        #expect(throws: (any Error).self) { try TestExchange.make(Ask.self, ["remember": ConfigNode(.list([]))]) }
    }

    // MARK: What is shown

    @Test func `credentials are masked in what a question shows`() async throws {
        let exchange = try exchange(ask())
        let pending = await exchange.start(
            try post(
                "/login?token=hush1", "{\"password\": \"hush2\", \"user\": \"ada\"}",
                [("Authorization", "Bearer hush3"), ("Cookie", "a=hush4"), ("X-Shown", "shown")]))
        while desk.all.isEmpty { await Task.yield() }
        let question = desk.all[0]
        let shown =
            question.subject.url + (question.subject.text ?? "")
            + question.subject.fields.map { "\($0.name): \($0.value)\n" }.joined() + question.json.text
        #expect(!shown.contains("hush"), "\(shown)")
        #expect(shown.contains("X-Shown: shown") && shown.contains("ada"))
        try answer(question, true)
        _ = try await pending.response()
        #expect(exchange.upstream.requests.first?.content.text?.contains("hush2") == true)
    }

    @Test func `a question holds at most 16 KiB, and says what it does not show`() async throws {
        let exchange = try exchange(ask())
        let fields: [(FieldName, String)] = [("X-Long", String(repeating: "y", count: 20_000)), ("X-Late", "1")]
        let pending = await exchange.start(try post("/big", String(repeating: "x", count: 8 << 10), fields))
        let subject = await question("/big").subject
        let held = (subject.text ?? "").utf8.count + subject.fields.reduce(0) { $0 + $1.value.utf8.count }
        #expect(held <= 16 << 10 && subject.isWhole && subject.size == 8 << 10)
        // A field is not shown, so that the answer counts for this request alone.
        #expect(subject.hiddenFields == 1 && !subject.isShownWhole && desk.all[0].spans == [.once])
        #expect(subject.fields.contains { $0.name == "X-Late" })
        try answer(desk.all[0], true)
        _ = try await pending.response()
    }

    @Test func `each decision is a line of the audit trail`() async throws {
        let exchange = try exchange(ask())
        let before = AuditTrail.shared.last
        let pending = await exchange.start(try post("/audited"))
        let question = await question("/audited")
        try answer(question, false)
        _ = try await pending.response()
        let lines = AuditTrail.shared.lines(after: before).map(\.json.text).filter { $0.contains("/audited") }
        #expect(lines.count == 2)
        #expect(lines.first?.contains(#""action":"asked""#) == true)
        #expect(lines.last?.contains(#""action":"refused""#) == true)
        #expect(lines.allSatisfy { $0.contains(question.subject.key.hex) && $0.contains(#""who":"203.0.113.7""#) })
    }

    // MARK: Hosts

    @Test func `a host that is in neither list is asked about, once for all of its requests`() async throws {
        let rule = try TestExchange.make(
            HostRule.self,
            ["allow": ["example.com"], "deny": ["denied.test"], "otherwise": "ask", "ask": ["remember": ["run"]]])
        let exchange = try TestExchange([rule])
        #expect(try await exchange.send(.make(.get, "http://example.com/")).status == .ok)
        #expect(try await exchange.send(.make(.get, "http://denied.test/")).status == .forbidden)
        let host = "h\(UUID().uuidString.lowercased()).test"
        let pending = await exchange.start(.make(.get, "http://\(host)/a"))
        var found: Question?
        while found == nil {
            await Task.yield()
            found = Questions.shared.all.first { $0.subject.host == "\(host):80" }
        }
        let question = try #require(found)
        try Questions.shared.answer(
            question, isYes: true, for: .run, at: LoopInstant(nanoseconds: 0), wall: WallTime(seconds: 0))
        #expect(try await pending.response().status == .ok)
        #expect(try await exchange.send(HttpRequest.make(.post, "http://\(host)/b?c")).status == .ok)
    }

    @Test(
        arguments: [
            ["otherwise": "ask"], ["allow": ["a"], "ask": ["timeout": "1m"]],
            ["allow": ["a"], "otherwise": "ask", "ask": ["remember": ["once"]]], ["deny": ["a"], "otherwise": "deny"],
        ] as [ConfigNode])
    func `options of questions about hosts that make no difference are refused`(options: ConfigNode) throws {
        #expect(throws: (any Error).self) { try TestExchange.make(HostRule.self, options) }
    }
}

extension Question.Subject {
    /// A subject with this digest.
    fileprivate init(key: Digest256, url: String = "http://a/") {
        self.init(
            key: key, scope: .request, who: "a", method: "GET", url: url, host: "a:80", fields: [], text: nil,
            size: 0, isWhole: true, hiddenFields: 0, isUrlCut: false, capture: nil, rule: "a",
            since: WallTime(seconds: 0))
    }
}
