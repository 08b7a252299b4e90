import GatewayConfig
import HttpWare
import Synchronization

/// The servers of a case: origin servers, and servers of side calls. Nothing leaves the process. Used on the case's loop only.
final class CaseScript: StandInOrigin {
    private let calls: [CallAnswer]
    /// The name of the service of each endpoint. The others are of the service whose origins clients choose.
    private let services: [ObjectIdentifier: String]
    /// The answers of the step that are left.
    private var answers: ArraySlice<OriginAnswer> = []
    private var repeatsAnswers = true
    private var place = SourceLocation.code
    private var answerCount = 0
    /// The requests and side calls of the step.
    private(set) var upstream: [StepResult.Sent] = []
    private(set) var called: [StepResult.Sent] = []
    /// The requests and calls without an answer.
    private(set) var problems: [CaseDifference] = []

    /// The maximum number of requests that a step keeps.
    private static let most = 1000

    init(_ calls: [CallAnswer], services: [ObjectIdentifier: String]) {
        self.calls = calls
        self.services = services
    }

    /// Begins a step.
    func begin(_ step: CaseStep, at location: SourceLocation) {
        answers = step.answers[...]
        answerCount = step.answers.count
        repeatsAnswers = step.repeatsAnswers
        place = location
        (upstream, called, problems) = ([], [], [])
    }

    // MARK: Origin servers

    func open(_ endpoint: Endpoint) throws(GatewayError) -> (SentRequest) -> StandInAnswer {
        let service = services[ObjectIdentifier(endpoint)] ?? ConfiguredService.passthroughName
        // A ware calls a service by its name: this is not the client's request.
        if let call = calls.first(where: { $0.service == service }) {
            return try opened(endpoint, call.answer) { [weak self] sent in self?.keep(call: sent) }
        }
        guard let answer = nextAnswer(service) else {
            return { [weak self] sent in
                self?.keep(upstream: sent)
                self?.missAnswer(sent)
                return .failure(
                    GatewayError(.upstream, .destinationUnavailable, "the case has no answer for this request"))
            }
        }
        return try opened(endpoint, answer) { [weak self] sent in self?.keep(upstream: sent) }
    }

    func refuses(_ endpoint: Endpoint) -> Bool {
        let service = services[ObjectIdentifier(endpoint)] ?? ConfiguredService.passthroughName
        if let call = calls.first(where: { $0.service == service }) { return call.answer.fails == .connect }
        return answers.first { $0.service == nil || $0.service == service }?.fails == .connect
    }

    /// The answer for the next request to the service; 200 if none is written, and `nil` if all are used.
    private func nextAnswer(_ service: String) -> OriginAnswer? {
        guard answerCount > 0 else { return OriginAnswer(at: place) }
        guard let index = answers.firstIndex(where: { $0.service == nil || $0.service == service }) else { return nil }
        let answer = answers[index]
        if !repeatsAnswers { answers.remove(at: index) }
        return answer
    }

    private func opened(
        _ endpoint: Endpoint, _ answer: OriginAnswer, keep: @escaping (SentRequest) -> Void
    ) throws(GatewayError) -> (SentRequest) -> StandInAnswer {
        if answer.fails == .connect { throw CaseScript.error(.connect, of: endpoint.name) }
        return { sent in
            keep(sent)
            return switch answer.fails {
            case .timeout: .never
            case .connect, .reset: .failure(CaseScript.error(.reset, of: endpoint.name))
            case nil: .response(answer.response, after: answer.after)
            }
        }
    }

    private static func error(_ failure: OriginAnswer.Failure, of server: String) -> GatewayError {
        switch failure {
        case .connect:
            GatewayError(
                .upstream, .connectionRefused, "\(server) refuses the connection, as the case says", mayRetry: true)
        case .timeout: GatewayError(.upstream, .responseTimeout, "\(server) does not answer, as the case says")
        case .reset:
            GatewayError(.upstream, .connectionTerminated, "\(server) closes the connection, as the case says")
        }
    }

    private func missAnswer(_ sent: SentRequest) {
        let request = upstream.last.map { CaseText.line($0) } ?? ""
        let last = CaseText.count(answerCount, "answer")
        problems.append(
            CaseDifference(
                at: place, "one more request goes upstream: \(request); upstream has \(last), and none is left for it"))
    }

    private func keep(upstream sent: SentRequest) {
        if upstream.count < CaseScript.most { upstream.append(StepResult.Sent(sent)) }
    }

    private func keep(call sent: SentRequest) {
        if called.count < CaseScript.most { called.append(StepResult.Sent(sent)) }
    }

    // MARK: Side calls

    /// The client for side calls, which answers by this script.
    func makeClient() -> any HttpClient { CaseClient(self) }

    /// The answer to a side call; `nil` if the case has none, which is a problem.
    fileprivate func answer(_ request: HttpRequest) -> OriginAnswer? {
        let url = String(decoding: request.targetUri(), as: UTF8.self)
        var sent = StepResult.Sent(method: "\(request.method)")
        sent.url = url
        sent.target = String(url.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" })
        sent.fields = CaseText.lines(request.fields)
        sent.content = request.content.bytes ?? []
        if called.count < CaseScript.most { called.append(sent) }
        if let call = calls.first(where: { $0.answers(sent.method, url) }) { return call.answer }
        if problems.count < CaseComparison.most {
            problems.append(CaseDifference(at: place, "calls has no answer for \(sent.method) \(CaseText.quoted(url))"))
        }
        return nil
    }
}

/// Sends the side calls of a case to its script.
///
/// Unchecked: used on the case's loop only, whose owner turns it on one thread.
private final class CaseClient: HttpClient, @unchecked Sendable {
    private let script: CaseScript

    init(_ script: CaseScript) { self.script = script }

    func start(
        _ request: HttpRequest, limits: CallLimits, completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        let call = CaseCall(completion)
        guard let loop = EventLoop.current else {
            completion(.failure(GatewayError(.gateway, .internalError, "a side call begins on a loop")))
            return call
        }
        let server = request.authority?.description ?? "the server"
        guard let answer = script.answer(request) else {
            let error = GatewayError(.upstream, .destinationUnavailable, "the case has no answer of \(server)")
            loop.later { call.finish(.failure(error)) }
            return call
        }
        switch answer.fails {
        case .timeout:
            loop.schedule(after: limits.timeout) {
                call.finish(.failure(GatewayError(.upstream, .responseTimeout, "\(server) does not answer")))
            }
        case .connect, .reset:
            let fault: GatewayError.Fault = answer.fails == .connect ? .connectionRefused : .connectionTerminated
            loop.later { call.finish(.failure(GatewayError(.upstream, fault, "\(server) fails, as the case says"))) }
        case nil:
            let response = answer.response
            guard (response.content.length ?? 0) <= limits.content.bytes else {
                let error = GatewayError(.upstream, .responseContentTooLarge, "the response of \(server) is too large")
                loop.later { call.finish(.failure(error)) }
                return call
            }
            if answer.after >= limits.timeout {
                let error = GatewayError(.upstream, .responseTimeout, "\(server) does not answer in time")
                loop.schedule(after: limits.timeout) { call.finish(.failure(error)) }
            } else if answer.after > .zero {
                loop.schedule(after: answer.after) { call.finish(.success(response)) }
            } else {
                loop.later { call.finish(.success(response)) }
            }
        }
        return call
    }
}

/// A side call of a case. Used on its loop only.
private final class CaseCall: HttpCall {
    private var completion: ((Result<HttpResponse, GatewayError>) -> Void)?

    init(_ completion: @escaping (Result<HttpResponse, GatewayError>) -> Void) { self.completion = completion }

    func finish(_ result: Result<HttpResponse, GatewayError>) { completion.take()?(result) }

    func cancel() { completion = nil }
}

extension StepResult.Sent {
    /// A request as it was sent.
    fileprivate init(_ sent: SentRequest) {
        service = sent.service
        let words = sent.lines.first?.split(separator: " ") ?? []
        method = words.first.map(String.init) ?? ""
        target = words.count > 1 ? String(words[1]) : ""
        fields = sent.lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":"), let name = FieldName(String(line[..<colon])) else { return nil }
            return CaseFields.Line(name: name, value: String(line[line.index(after: colon)...].drop { $0 == " " }))
        }
        trailers = sent.trailers.map { CaseText.lines($0) } ?? []
        content = sent.content
    }
}
