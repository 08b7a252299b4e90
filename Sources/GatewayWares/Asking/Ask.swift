public import HttpWare
import Wares

/// Lets a person decide about requests: each waits until it is allowed or refused.
public struct Ask: Middleware {
    /// The end of a wait without an answer.
    public enum WithoutAnswer: String, Sendable, CaseIterable, OptionWord { case deny, allow }

    /// For how long an answer may count.
    public enum Remember: String, Sendable, CaseIterable, OptionWord { case once, run, always }

    /// How long a request waits for an answer.
    public var timeout = Duration.seconds(300)
    /// The end of a wait without an answer.
    public var onTimeout = WithoutAnswer.deny
    /// For how long answers may count, the usual span first.
    public var remember: [Remember] = [.once, .run, .always]
    /// The maximum number of requests that wait at once; further ones are refused.
    public var max = 1000
    /// The fields that an answer is bound to, besides method, URL, content, and fields that are named like credentials.
    public var fields: [FieldName] = [
        .contentType, .contentEncoding, "Destination", "Depth", "Overwrite", .range, "If-Match", "If-None-Match",
        "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "Prefer", "SOAPAction", "X-Amz-Target",
    ]
    let scope: Question.Scope
    let approvals: ApprovalFile?
    let hook: Hook?
    let sink: LogSink?
    private let places = HeldPlaces()
    let desk: Questions

    public var holdsState: Bool { true }
    public var contentNeed: ContentNeed { scope == .request ? .ifWhole(upTo: Self.mostContent) : .none }

    /// The most bytes of content that a request is read for before it waits.
    static let mostContent = 8 << 10

    /// Asks about requests, or about their hosts. `always` needs a file for approvals.
    init(
        _ scope: Question.Scope = .request, approvals: ApprovalFile? = nil, hook: Hook? = nil, sink: LogSink? = nil,
        desk: Questions = .shared
    ) {
        self.scope = scope
        self.approvals = approvals
        self.hook = hook
        self.sink = sink
        self.desk = desk
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        // A dry run does not wait, but reports the wait.
        if exchange.isDryRun { return .wait { _, _ in .pass } }
        var content: (bytes: [UInt8], isWhole: Bool) =
            scope == .host || request.content.isEmpty ? ([], true) : exchange.beginningOfContent
        if content.bytes.count > Self.mostContent { content = (Array(content.bytes.prefix(Self.mostContent)), false) }
        let subject = Question.Subject(
            request, exchange, scope, fields: fields, rule: exchange.route ?? exchange.listener, content: content)
        let isBound = subject.isShownWhole
        if isBound, remember.contains(.run), let known = desk.answer(to: subject.key, at: exchange.now) {
            return decided(known, by: "an earlier answer", subject, exchange)
        }
        if isBound, let known = approvals?.answer(to: subject.key, at: exchange.now) {
            return decided(known, by: "the file of approvals", subject, exchange)
        }
        guard places.take(atMost: max) else {
            exchange.note("\(max) requests wait already", asDecision: true)
            audit("refused", subject, exchange, reason: "\(max) requests wait already")
            return .abort(with: .problem(.serviceUnavailable, "too many requests wait for a person's answer"))
        }
        let wait = LoopWait<Question.Outcome>()
        // An answer must not count for anything that the person has not seen.
        let spans = isBound ? remember.filter { $0 != .always || approvals != nil } : [.once]
        let (question, isNew) = desk.ask(subject, wait, spans: spans, until: exchange.wallNow + timeout, approvals)
        if isNew {
            audit("asked", subject, exchange)
            hook?.tell(question)
        }
        let began = exchange.now
        return .wait { _, exchange in
            defer {
                desk.leave(question, wait)
                places.giveBack()
            }
            let outcome: Question.Outcome
            do {
                outcome = try await wait.value(within: timeout, else: .late)
            } catch {
                audit("given up", subject, exchange, after: exchange.now - began, reason: "the client left")
                throw error
            }
            let waited = exchange.now - began
            switch outcome {
            case .answered(let isYes, let person): return decided(isYes, by: person, subject, exchange, after: waited)
            case .late:
                exchange.note(
                    onTimeout == .deny ? "refused, without an answer" : "allowed, without an answer", asDecision: true)
                let words = "no answer within \(timeout.optionText)"
                audit(onTimeout == .deny ? "refused" : "allowed", subject, exchange, after: waited, reason: words)
                return onTimeout == .allow ? .pass : refusal("a person was asked, and gave no answer in time")
            }
        }
    }

    private func decided(
        _ isYes: Bool, by person: String, _ subject: Question.Subject, _ exchange: Exchange,
        after waited: Duration? = nil
    ) -> Verdict {
        exchange.note("\(isYes ? "allowed" : "refused") by \(person)", asDecision: true)
        audit(isYes ? "allowed" : "refused", subject, exchange, by: person, after: waited)
        return isYes ? .pass : refusal("a person refused this request")
    }

    private func refusal(_ reason: String) -> Verdict { .abort(with: .problem(.forbidden, reason)) }

    private func audit(
        _ action: String, _ subject: Question.Subject, _ exchange: Exchange, by person: String? = nil,
        after waited: Duration? = nil, reason: String? = nil
    ) {
        AuditTrail.shared.add(
            .question,
            [
                ("action", .text(action)), ("who", .text(subject.who)), ("method", .text(subject.method)),
                ("url", .text(subject.url)), ("host", .text(subject.host)), ("hash", .text(subject.key.hex)),
                ("rule", .text(subject.rule)), ("by", .optional(person)), ("reason", .optional(reason)),
                ("waitedMs", waited.map { .number(Int($0 / .milliseconds(1))) } ?? .null),
            ], at: exchange.wallNow, to: sink)
    }
}

extension Ask: AccessRule {}

extension Ask: ConfigurableWare {
    public static let name: WareName = "ask"
    public static let chainPlace: ChainPlace? = .accessRules
    public static let about = WareAbout(
        "Lets a person decide about requests: each waits until it is allowed or refused.",
        source: "OpenSnitch, Little Snitch",
        example: #"""
            - ask: { timeout: 5m, onTimeout: deny, remember: [once, run, always] }
              if: { method: [POST, DELETE] }
            """#,
        details: #"""
            The question is on the page, in `\#(ProgramName.text) approve ls`, and at the URL in `notify`, with the request; values that
            are named like credentials are masked. `\#(ProgramName.text) approve yes ID` lets the request go on, `\#(ProgramName.text) approve no ID`
            answers it with 403, as does the end of `timeout` unless `onTimeout` allows. The client sees only that the response is late. If
            it leaves, the question ends.

            An answer is bound to the route, the principal or the client's address, method, URL, the fields in `fields`, fields that
            are named like credentials, and content: a request that differs in one of these asks again. Equal requests at the same time are one question. `once` counts for the requests that wait, `run`
            until the gateway ends, a duration such as `10m` for that time where `run` is allowed, and `always` until it is taken back: it is
            a line in `file`, which has only answers, and which `\#(ProgramName.text) approve rm` shortens. If the file has a mistake, no answer
            in it counts.

            Content is read before the question if it has at most 8 KiB and comes without a pause. About larger content, and about requests
            whose fields and URL have more than 8 KiB, only `once` can be answered, because not all of it is shown. If `max` requests wait, further ones are answered with 503.

            `notify` sends each question as JSON: `id`, `who`, `method`, `url`, `host`, `hash`, `since`, `until`. Its response is ignored.
            `audit` writes a line of JSON for each question and each answer; `\#(ProgramName.text) audit` shows them, too. Put the ware after
            the wares that authenticate, and before the wares that add tokens. Everybody who may use the admin listener may answer.
            """#,
        otherNames: ["approve", "approval", "confirm", "prompt", "humanInTheLoop"])

    public init(options: inout OptionsReader) {
        self.init(.request, options: &options)
        options.read(
            "fields", into: &fields,
            doc: "fields that an answer is bound to, besides method, URL, content and fields named like credentials")
    }

    /// Reads the options that questions about requests and about hosts have in common.
    init(_ scope: Question.Scope, options: inout OptionsReader) {
        let usual = Ask(scope)
        var (timeout, onTimeout, remember, max) = (usual.timeout, usual.onTimeout, usual.remember, usual.max)
        // A host is asked about by each of its requests.
        if scope == .host { remember = [.run, .always] }
        var file: FilePath?
        var url: HttpUrl?
        var sink: LogSink?
        options.read(
            "timeout", into: &timeout, in: .seconds(1) ... .seconds(86_400),
            doc: "how long a request waits for an answer")
        options.read("onTimeout", into: &onTimeout, doc: "the end of a wait without an answer")
        options.read("remember", into: &remember, doc: "for how long answers may count; the first is the usual one")
        options.refuseEmpty("remember", "write such as [once, run]")
        options.read("max", into: &max, in: 1...10_000, doc: "maximum number of requests that wait; others get 503")
        options.read(
            "file", into: &file,
            doc: "file for answers that always count; by default approvals.yaml beside the configuration file")
        options.read("notify", doc: "a program that gets each question") {
            $0.read("url", into: &url, doc: "URL that gets a POST with the question as JSON")
            if $0.isWritten { $0.require("url") }
        }
        options.read("audit", doc: "a line for each question and each answer") {
            let read = AuditTrail.readSink(&$0)
            if $0.isWritten { sink = read }
        }
        if scope == .host, remember.contains(.once) {
            options.fail(
                at: "remember", "cannot have once for hosts, about which each request would ask; write run or always")
        }
        if let url, !url.isSafe { options.warn(at: "notify", "questions are sent in clear text; write https") }
        var approvals: ApprovalFile?
        if remember.contains(.always), !options.isDescribing {
            let path =
                file?.path ?? FilePath.joined("approvals.yaml", writtenIn: options.location.file)
            if FileGate.refusal == nil, let problem = ApprovalFile.problem(of: path) {
                options.fail(at: "file", "\(path.quotedForErrors): \(problem)")
            }
            approvals = ApprovalFile.at(path)
        } else if file != nil {
            options.fail(at: "file", "has no effect, because remember has no always; remove it")
        }
        self.init(scope, approvals: approvals, hook: url.flatMap(Hook.init), sink: sink)
        self.timeout = timeout
        self.onTimeout = onTimeout
        self.remember = remember
        self.max = max
    }
}

extension Ask {
    /// A program that gets questions.
    struct Hook: Sendable {
        private let request: HttpRequest
        private let name: String

        private static let limits = CallLimits(timeout: .seconds(5), content: .kibibytes(16))

        init?(_ url: HttpUrl) {
            guard let request = try? HttpRequest(.post, url.text) else { return nil }
            self.request = request
            name = url.text
        }

        /// Sends the question. A failure is logged.
        func tell(_ question: Question) {
            var request = request
            try? request.fields.set(.contentType, to: "application/json")
            request.content = .bytes(Array(question.json.text.utf8))
            SideCaller().start(request, limits: Self.limits) { answer in
                if case .failure(let error) = answer {
                    WareLog.shared.log(
                        .warning, "ask: \(name.quotedForErrors) did not get question \(question.id): \(error)")
                }
            }
        }
    }
}

extension Question {
    /// The question without fields and content, for programs.
    public var json: Json {
        .object([
            ("id", .text(String(id))), ("scope", .text(subject.scope.rawValue)), ("who", .text(subject.who)),
            ("method", .text(subject.method)), ("url", .text(subject.url)), ("host", .text(subject.host)),
            ("hash", .text(subject.key.hex)), ("rule", .text(subject.rule)),
            ("capture", .optional(subject.capture.map(String.init))), ("since", .text(subject.since.rfc3339)),
            ("until", .text(until.rfc3339)), ("hiddenHeaders", .number(subject.hiddenFields)),
            ("answers", .list(spans.map { .text($0.rawValue) })),
        ])
    }
}
