public import HttpWare
import Wares

/// Lets a program in any language decide about requests and responses: over HTTP, started by the gateway or running elsewhere.
public struct Callout: Middleware, Postware, ContentEditor {
    /// The treatment of an exchange about which the program cannot decide.
    public enum FailureMode: String, OptionWord {
        /// The exchange fails, too.
        case closed
        /// The exchange continues unchanged.
        case open
    }

    /// Whether exchanges continue unchanged if the program gives no answer, or a wrong one.
    public let failsOpen: Bool
    /// `nil` only if the options are wrong; then every request fails.
    private let caller: CalloutCaller?
    /// Whether responses may be asked about.
    private let mayWantResponses: Bool

    public var responseStatuses: StatusSet { mayWantResponses ? .all : [] }
    /// A program can keep values as long as it runs.
    public var holdsState: Bool { caller?.program != nil }

    init(_ caller: CalloutCaller?, mayWantResponses: Bool, failsOpen: Bool) {
        self.caller = caller
        self.mayWantResponses = mayWantResponses
        self.failsOpen = failsOpen
    }

    // MARK: Content

    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        exchange.isDryRun ? nil : caller?.requestContent
    }

    public func contentLimit(of response: HttpResponse, in exchange: Exchange) -> Int? {
        guard let wants = caller?.knownWants, wants.response, !Callout.isEventStream(response) else { return nil }
        return wants.responseContent
    }

    /// Whether the response does not end while the client listens.
    private static func isEventStream(_ response: HttpResponse) -> Bool {
        response.fields[.contentType]?.prefix { $0 != ";" && $0 != " " }.lowercased() == "text/event-stream"
    }

    /// The content for a message; `nil` without content, or if the program does not see it.
    private static func content(
        _ content: HttpContent, _ fields: HttpFields, limit: Int?
    ) throws(CalloutFault) -> CalloutContent? {
        guard let limit, !content.isEmpty else { return nil }
        guard let bytes = content.bytes else { throw CalloutContent.tooLarge(limit) }
        return CalloutContent(bytes: bytes, codings: fields.listMembers(of: .contentEncoding), limit: limit)
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        guard let caller else { throw GatewayError(.gateway, .wareFailed, "the callout has no program") }
        if let wants = caller.knownWants, !wants.request { return .pass }
        if exchange.isDryRun { exchange.note("would call out to \(caller.name)") }
        return .wait { request, exchange in
            do {
                return try await ask(caller, &request, exchange)
            } catch let fault as CalloutFault {
                return try failed(fault, exchange)
            }
        }
    }

    private func ask(
        _ caller: CalloutCaller, _ request: inout HttpRequest, _ exchange: Exchange
    ) async throws -> Verdict {
        let wants = try await caller.ready(in: exchange)
        guard wants.request else { return .pass }
        let content = try Callout.content(
            request.content, request.fields, limit: request.upgrade == nil ? wants.requestContent : nil)
        let answer = try await answer(CalloutMessage(request, in: exchange, content: content), caller, exchange)
        note(answer, exchange)
        switch answer.decision {
        case .edits(let edits):
            try edits.apply(to: &request, in: exchange)
            return .pass
        case .respond(let response): return .abort(with: response.response)
        case .drop:
            drop(exchange)
            return .abort(with: HttpResponse(.badGateway))
        }
    }

    /// Handles a request about which the program cannot decide.
    private func failed(_ fault: CalloutFault, _ exchange: Exchange) throws -> Verdict {
        let error = report(fault, exchange, .gateway)
        if fault.kind == .noAnswer, !failsOpen { return AuthenticationChallenge.tryLater(error.reason, after: 5) }
        if fault.kind == .content { throw GatewayError(.downstream, .contentTooLarge, fault.reason) }
        throw error
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        guard let caller, mayWantResponses else { return .pass }
        if let wants = caller.knownWants, !wants.response { return .pass }
        return .wait { response, exchange in
            do {
                return try await ask(caller, &response, exchange)
            } catch let fault as CalloutFault {
                let error = report(fault, exchange, .upstream)
                if fault.kind == .content { throw GatewayError(.upstream, .responseContentTooLarge, fault.reason) }
                throw error
            }
        }
    }

    private func ask(
        _ caller: CalloutCaller, _ response: inout HttpResponse, _ exchange: Exchange
    ) async throws -> Answer {
        let wants = try await caller.ready(in: exchange)
        guard wants.response else { return .pass }
        let isCollected = response.status != .switchingProtocols && !Callout.isEventStream(response)
        let content = try Callout.content(
            response.content, response.fields, limit: isCollected ? wants.responseContent : nil)
        let answer = try await answer(CalloutMessage(response, in: exchange, content: content), caller, exchange)
        note(answer, exchange)
        switch answer.decision {
        case .edits(let edits):
            try edits.apply(to: &response, in: exchange)
            return .pass
        case .respond(let made):
            guard response.status != .switchingProtocols else {
                throw CalloutFault.wrong("only the fields of an upgrade can be changed")
            }
            return .replace(with: made.response)
        case .drop:
            drop(exchange)
            return .replace(with: HttpResponse(.badGateway))
        }
    }

    // MARK: The call

    /// Messages and answers that are longer than this are written and read on separate threads.
    private static let mostOnLoop = 32 << 10

    private func answer(
        _ message: CalloutMessage, _ caller: CalloutCaller, _ exchange: Exchange
    ) async throws -> CalloutAnswer {
        let isLong = message.contentCount > (message.isCoded ? 1 << 10 : Callout.mostOnLoop)
        let json = try await done(elsewhere: isLong) { () throws(CalloutFault) in try message.json() }
        let answer = try await caller.send(json, in: exchange)
        let half = message.half
        return try await done(elsewhere: answer.count > Callout.mostOnLoop) { () throws(CalloutFault) in
            try CalloutAnswer(answer, to: half)
        }
    }

    /// Does work on the loop, or on the threads for long content.
    private func done<Value: Sendable>(
        elsewhere: Bool, _ work: @escaping @Sendable () throws(CalloutFault) -> Value
    ) async throws -> Value {
        guard elsewhere else { return try work() }
        let wait = LoopWait<Result<Value, CalloutFault>>()
        let isTaken = ContentEditing.threads.submit({
            Result { () throws(CalloutFault) in try work() }
        }) { wait.resume(returning: $0) }
        guard isTaken else {
            throw CalloutFault(.noAnswer, "too many long contents are written or read at the moment")
        }
        return try await wait.value().get()
    }

    private func note(_ answer: CalloutAnswer, _ exchange: Exchange) {
        for note in answer.notes { exchange.note(note.value, as: note.name) }
    }

    private func drop(_ exchange: Exchange) {
        exchange.note("dropped", asDecision: true)
        exchange.breakOff()
    }

    /// Reports a fault in record and log. A client on this host learns it; others learn only that there was one.
    private func report(_ fault: CalloutFault, _ exchange: Exchange, _ side: GatewayError.Side) -> GatewayError {
        exchange.note(fault.reason)
        WareLog.shared.log(.warning, "the callout failed: \(fault.reason)")
        let isLocal = exchange.peer?.address?.isLoopback ?? false
        return GatewayError(
            side, .wareFailed, isLocal ? "the callout failed: \(fault.reason)" : "the callout failed")
    }
}

extension Callout: StartingWare, FinishingWare {
    public var starter: (any WareStarter)? { caller?.program }
    public var finisher: (any WareFinisher)? { caller?.program }
}
