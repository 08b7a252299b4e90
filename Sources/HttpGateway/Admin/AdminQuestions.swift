import Capturing
import GatewayWares
import HttpWare
import Wares

extension AdminEndpoint {
    /// The questions of `ask`, the answers that count, and the audit trail.
    static func questions() -> [AdminEndpoint] {
        let desk = Questions.shared
        return [
            AdminEndpoint(path: "/v1/questions", access: .known) { _, _ in
                .abort(with: .json(.object([("questions", .list(desk.all.map { json($0, desk) }))])))
            },
            AdminEndpoint(path: "/v1/questions/*", access: .known) { request, _ in
                guard let question = Int(request.argument).flatMap(desk.find) else { return .abort(with: goneQuestion) }
                return .abort(with: .json(json(question, desk)))
            },
            AdminEndpoint(path: "/v1/questions/*/answer", access: .known, isWrite: true) { request, exchange in
                let (now, wall) = (exchange.now, exchange.wallNow)
                let person = exchange.client.map { "a person at \($0)" } ?? "a person"
                // An answer that always counts is written to a file.
                return .wait { _, _ in
                    .abort(with: await Task.detached { answer(request, desk, now, wall, by: person) }.value)
                }
            },
            AdminEndpoint(path: "/v1/approvals", access: .known) { _, exchange in
                let now = exchange.now
                return .wait { _, _ in .abort(with: await Task.detached { approvals(desk, now) }.value) }
            },
            AdminEndpoint(path: "/v1/approvals/*", access: .known, isDelete: true) { request, exchange in
                let now = exchange.now
                return .wait { _, _ in .abort(with: await Task.detached { remove(request, desk, now) }.value) }
            },
            AdminEndpoint(path: "/v1/audit", access: .known) { request, exchange in
                let seconds = request.parameter("since").flatMap { Int64($0) }
                return .abort(
                    with: audit(
                        after: request.parameter("after").flatMap { Int($0) } ?? 0,
                        within: seconds.flatMap { (1...Int64(Int32.max)).contains($0) ? .seconds($0) : nil },
                        exchange.wallNow))
            },
        ]
    }

    private static let goneQuestion = HttpResponse.problem(.notFound, "no question with this id is open")

    private static func json(_ question: Question, _ desk: Questions) -> Json {
        let subject = question.subject
        guard case .object(let members) = question.json else { return question.json }
        return .object(
            members + [
                ("waiting", .number(desk.waiting(question))),
                (
                    "headers",
                    .list(subject.fields.map { .object([("name", .text($0.name)), ("value", .text($0.value))]) })
                ),
                (
                    "content",
                    .object([
                        ("size", .number(subject.size)), ("whole", .bool(subject.isWhole)),
                        ("text", .optional(subject.text)),
                    ])
                ),
            ])
    }

    // MARK: Answers

    /// Reads `{answer, for?}`, and answers the question.
    private static func answer(
        _ request: AdminRequest, _ desk: Questions, _ now: LoopInstant, _ wall: WallTime, by person: String
    ) -> HttpResponse {
        guard let question = Int(request.argument).flatMap(desk.find) else { return goneQuestion }
        guard let json = try? JsonValue(request.content), let members = json.members,
            members.allSatisfy({ ["answer", "for"].contains($0.name) }), let word = json["answer"]?.string,
            word == "yes" || word == "no"
        else {
            return .problem(.badRequest, "write a JSON object with answer, which is yes or no, and for")
        }
        let usual = question.spans.first?.rawValue ?? "once"
        let text = json["for"]?.string ?? usual
        guard let span = span(text) else {
            return .problem(.badRequest, "\(text.quotedForErrors) is not once, run, always or a duration such as 10m")
        }
        do throws(Questions.Refusal) {
            try desk.answer(question, isYes: word == "yes", for: span, at: now, wall: wall, by: person)
        } catch {
            return refusal(error, question, text)
        }
        return .json(
            .object([("id", .text(String(question.id))), ("answer", .text(word)), ("for", .text(text))]))
    }

    private static func span(_ text: String) -> Question.Span? {
        switch text {
        case "once": return .once
        case "run": return .run
        case "always": return .always
        default:
            guard let duration = try? Duration(optionText: text), duration > .zero, duration <= .seconds(31_536_000)
            else { return nil }
            return .lasting(duration)
        }
    }

    private static func refusal(_ refusal: Questions.Refusal, _ question: Question, _ span: String) -> HttpResponse {
        switch refusal {
        case .gone: goneQuestion
        case .span:
            .problem(
                .conflict,
                "an answer to this question cannot count for \(span.quotedForErrors); it can for "
                    + question.spans.map(\.rawValue).joined(separator: ", "))
        case .full: .problem(.conflict, "too many answers are remembered; answer once, or take some back")
        case .file(let error):
            .problem(.internalServerError, "the file of approvals cannot be written: \(error); the question stays open")
        }
    }

    // MARK: Approvals

    private static func approvals(_ desk: Questions, _ now: LoopInstant) -> HttpResponse {
        let remembered = desk.remembered(at: now).map { one -> Json in
            let subject = one.subject
            return .object([
                ("id", .text(String(subject.key.hex.prefix(8)))), ("answer", .text(one.isYes ? "yes" : "no")),
                ("who", .text(subject.who)),
                ("what", .text(subject.scope == .host ? subject.host : "\(subject.method) \(subject.url)")),
                ("for", .text(one.until.map { "\(max(1, Int(($0 - now) / .seconds(1))))s" } ?? "run")),
                ("at", .text(subject.since.rfc3339)), ("file", .null),
            ])
        }
        let kept = ApprovalFile.all.flatMap { file in
            file.approvals.map { one -> Json in
                .object([
                    ("id", .text(one.id)), ("answer", .text(one.isYes ? "yes" : "no")), ("who", .text(one.who)),
                    ("what", .text(one.what)), ("for", .text("always")), ("at", .text(one.at)),
                    ("file", .text(file.path)),
                ])
            }
        }
        return .json(.object([("approvals", .list(remembered + kept))]))
    }

    /// Takes back the answers whose id begins with the argument: at least eight digits.
    private static func remove(_ request: AdminRequest, _ desk: Questions, _ now: LoopInstant) -> HttpResponse {
        let id = String(request.argument)
        guard (8...64).contains(id.utf8.count), id.allSatisfy({ $0.isHexDigit && $0.isASCII }) else {
            return .problem(.badRequest, "write the id of an approval, which has at least eight hexadecimal digits")
        }
        var count = 0
        for one in desk.remembered(at: now) where one.subject.key.hex.hasPrefix(id) {
            if desk.forget(one.subject.key) { count += 1 }
        }
        for file in ApprovalFile.all {
            do throws(SystemError) {
                count += try file.remove(id)
            } catch {
                return .problem(
                    .internalServerError, "\(file.path.quotedForErrors) cannot be written: \(error)")
            }
        }
        guard count > 0 else { return .problem(.notFound, "no approval has this id") }
        return .json(.object([("id", .text(id)), ("removed", .number(count))]))
    }

    // MARK: The audit trail

    /// The lines after a number, and of the last time only.
    private static func audit(after number: Int, within time: Duration?, _ now: WallTime) -> HttpResponse {
        let lines = AuditTrail.shared.lines(after: number)
        let shown = time.map { time in lines.filter { now - $0.time <= time } } ?? lines
        return .json(
            .object([
                ("last", .number(lines.last?.number ?? AuditTrail.shared.last)), ("lines", .list(shown.map(\.json))),
            ]))
    }
}
