import HttpCaching
public import HttpWare
import Scripting
import Wares

/// A message that a half of a script gets.
private protocol ScriptMessage {
    static var function: LoadedScript.Function { get }
    static var arguments: [ScriptState.Argument] { get }
    /// Lends the message to a call, or takes it back.
    static func lend(_ message: UnsafeMutablePointer<Self>?, to turn: ScriptTurn)
}

extension HttpRequest: ScriptMessage {
    fileprivate static var function: LoadedScript.Function { .request }
    fileprivate static var arguments: [ScriptState.Argument] { Script.ofRequest }
    fileprivate static func lend(_ message: UnsafeMutablePointer<HttpRequest>?, to turn: ScriptTurn) {
        turn.request = message
    }
}

extension HttpResponse: ScriptMessage {
    fileprivate static var function: LoadedScript.Function { .response }
    fileprivate static var arguments: [ScriptState.Argument] { Script.ofResponse }
    fileprivate static func lend(_ message: UnsafeMutablePointer<HttpResponse>?, to turn: ScriptTurn) {
        turn.response = message
    }
}

/// Runs a script in Lua that can read, change and answer requests and responses.
public struct Script: Middleware, Postware {
    /// The treatment of an exchange whose script failed.
    public enum FailureMode: String, OptionWord {
        /// The exchange fails, too.
        case closed
        /// The exchange continues unchanged.
        case open
    }

    /// `nil` only if the options are wrong; then every request fails.
    private let script: LoadedScript?
    private let states: ScriptStates?
    private let client: any HttpClient
    private let store: any RecordStore
    public let failsOpen: Bool

    public var contentNeed: ContentNeed { script?.requestContent.map { .whole(upTo: $0) } ?? .none }
    public var responseContentNeed: ContentNeed { script?.responseContent.map { .whole(upTo: $0) } ?? .none }
    public var responseStatuses: StatusSet { script?.hasResponse == true ? .all : [] }
    public var mayReplay: Bool { script?.replays ?? false }
    /// Values of the script's main part live as long as the ware.
    public var holdsState: Bool { true }

    init(
        _ script: LoadedScript?, failsOpen: Bool, store: any RecordStore, client: any HttpClient = SideCaller()
    ) {
        self.script = script
        self.store = store
        self.failsOpen = failsOpen
        self.client = client
        states = script.map { ScriptStates($0) }
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        guard let script, let states else {
            throw GatewayError(.gateway, .wareFailed, "the script was not loaded")
        }
        if script.hasEnded { registerEnd(exchange, script, states) }
        guard script.hasRequest else { return .pass }
        let former = failsOpen ? Former(copy request) : nil
        do throws(ScriptFault) {
            let loop = try states.state(of: exchange)
            var begun: Begun?
            if exchange.isDryRun || !loop.rests(at: exchange.now) {
                let call = begin(&request, loop, exchange)
                guard case .waits(let waiting) = call.outcome else {
                    defer { loop.giveBack(call.turn) }
                    return try Self.verdict(call.outcome, script)
                }
                if exchange.isDryRun {
                    drop(waiting, call.turn, loop, exchange)
                    return .wait { _, _ in .pass }
                }
                begun = call
            }
            return .wait { [begun] request, exchange in
                do {
                    let call = try await end(begun, &request, states, exchange, within: script.limits.timeout)
                    return try Self.verdict(call.outcome, script)
                } catch let fault as ScriptFault {
                    if let former { request = former.message }
                    throw report(fault, exchange, .gateway)
                }
            }
        } catch {
            if let former { request = former.message }
            throw report(error, exchange, .gateway)
        }
    }

    /// A message as it was before the script, for a ware that fails open.
    private final class Former<Message> {
        let message: Message

        init(_ message: Message) { self.message = message }
    }

    static let ofRequest: [ScriptState.Argument] = [
        .object(ScriptKind.request.rawValue), .options, .object(ScriptKind.exchange.rawValue),
    ]
    static let ofResponse: [ScriptState.Argument] = [
        .object(ScriptKind.response.rawValue), .options, .object(ScriptKind.exchange.rawValue),
    ]

    /// A call that has begun.
    private struct Begun {
        let turn: ScriptTurn
        let loop: LoopScript
        var outcome: ScriptState.Outcome
    }

    /// Begins a half of the script with its message.
    private func begin<Message: ScriptMessage>(
        _ message: inout Message, _ loop: LoopScript, _ exchange: Exchange
    ) -> Begun {
        let turn = loop.takeTurn(in: exchange)
        let start = exchange.now
        let outcome = withUnsafeMutablePointer(to: &message) { message in
            Message.lend(message, to: turn)
            defer { Message.lend(nil, to: turn) }
            return loop.state.begin(function: Message.function.rawValue, arguments: Message.arguments, host: turn)
        }
        loop.hasRun(from: start, in: exchange)
        return Begun(turn: turn, loop: loop, outcome: outcome)
    }

    /// Runs a half of the script to its end, with its waits. Begins it after the script's rest if it has not begun.
    private func end<Message: ScriptMessage>(
        _ begun: Begun?, _ message: inout Message, _ states: ScriptStates, _ exchange: Exchange,
        within timeout: Duration
    ) async throws -> Begun {
        var call: Begun
        if let begun {
            call = begun
        } else {
            var loop = try states.state(of: exchange)
            let patience = exchange.now + timeout
            while try await rest(loop, exchange, until: patience) { loop = try states.state(of: exchange) }
            call = begin(&message, loop, exchange)
        }
        let deadline = exchange.now + timeout
        while case .waits(let waiting) = call.outcome {
            let result = try await carryOut(call.turn, waiting, call.loop, exchange, until: deadline)
            let (turn, state) = (call.turn, call.loop.state)
            do {
                while try await rest(call.loop, exchange, until: deadline) {}
            } catch {
                state.drop(waiting)
                throw error
            }
            let start = exchange.now
            call.outcome = withUnsafeMutablePointer(to: &message) { message in
                Message.lend(message, to: turn)
                defer { Message.lend(nil, to: turn) }
                return state.resume(waiting, with: result, host: turn)
            }
            call.loop.hasRun(from: start, in: exchange)
        }
        return call
    }

    /// Waits while the script rests on the loop. Returns whether it did.
    private func rest(_ loop: LoopScript, _ exchange: Exchange, until deadline: LoopInstant) async throws -> Bool {
        guard loop.rests(at: exchange.now), let end = loop.restsUntil else { return false }
        guard end < deadline else { throw late(at: nil) }
        try await exchange.sleep(for: end - exchange.now)
        return true
    }

    private static func verdict(_ outcome: ScriptState.Outcome, _ script: LoadedScript) throws(ScriptFault) -> Verdict {
        let response = try response(outcome, script)
        return response.map { .abort(with: $0) } ?? .pass
    }

    private static func response(_ outcome: ScriptState.Outcome, _ script: LoadedScript) throws(ScriptFault)
        -> HttpResponse?
    {
        switch outcome {
        case .done(let value):
            do throws(ScriptMisuse) {
                return try ScriptVerdict.response(value)
            } catch {
                throw ScriptFault(.error, name: script.name, line: nil, reason: error.reason)
            }
        case .failed(let fault): throw fault
        case .waits: return nil
        }
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        guard let script, let states, script.hasResponse else { return .pass }
        let former = failsOpen ? Former(copy response) : nil
        do throws(ScriptFault) {
            let loop = try states.state(of: exchange)
            var begun: Begun?
            if exchange.isDryRun || !loop.rests(at: exchange.now) {
                let call = begin(&response, loop, exchange)
                guard case .waits(let waiting) = call.outcome else {
                    defer { loop.giveBack(call.turn) }
                    return try Self.answer(call.outcome, call.turn, script)
                }
                if exchange.isDryRun {
                    drop(waiting, call.turn, loop, exchange)
                    return .wait { _, _ in .pass }
                }
                begun = call
            }
            return .wait { [begun] response, exchange in
                do {
                    let call = try await end(begun, &response, states, exchange, within: script.limits.timeout)
                    return try Self.answer(call.outcome, call.turn, script)
                } catch let fault as ScriptFault {
                    if let former { response = former.message }
                    throw report(fault, exchange, .upstream)
                }
            }
        } catch {
            if let former { response = former.message }
            throw report(error, exchange, .upstream)
        }
    }

    private static func answer(
        _ outcome: ScriptState.Outcome, _ turn: ScriptTurn, _ script: LoadedScript
    ) throws(ScriptFault) -> Answer {
        if let response = try response(outcome, script) { return .replace(with: response) }
        return turn.replay.map { .replay(after: $0) } ?? .pass
    }

    // MARK: The end

    /// The scripts whose functions for the end will be called.
    private enum End: ExchangeKey {
        typealias Value = [ObjectIdentifier]
    }

    private func registerEnd(_ exchange: Exchange, _ script: LoadedScript, _ states: ScriptStates) {
        // A replay runs the request half again.
        let registered = exchange[End.self] ?? []
        guard !registered.contains(ObjectIdentifier(script)) else { return }
        exchange[End.self] = registered + [ObjectIdentifier(script)]
        exchange.onEnd { exchange in
            guard let loop = try? states.state(of: exchange) else { return }
            let turn = loop.takeTurn(in: exchange)
            defer { loop.giveBack(turn) }
            let start = exchange.now
            let outcome = loop.state.begin(
                function: LoadedScript.Function.ended.rawValue,
                arguments: [.object(ScriptKind.exchange.rawValue), .options], host: turn)
            loop.hasRun(from: start, in: exchange)
            if case .failed(let fault) = outcome { WareLog.shared.log(.error, "the script failed: \(fault)") }
        }
    }

    // MARK: Waits

    /// Carries out what the script waits for. Throws if the client leaves, or if the call takes too long.
    private func carryOut(
        _ turn: ScriptTurn, _ call: ScriptState.Call, _ loop: LoopScript, _ exchange: Exchange,
        until deadline: LoopInstant
    ) async throws -> Result<[ScriptValue], ScriptRefusal> {
        do {
            let left = deadline - exchange.now
            guard left > .zero else { throw late(at: turn.waitingLine) }
            switch turn.wait {
            case .sleep(let duration):
                try await exchange.sleep(for: min(duration, left))
                guard duration <= left else { throw late(at: turn.waitingLine) }
                return .success([])
            case .fetch(let fetch):
                let values = try await fetch.carryOut(in: exchange, client: client, within: left)
                try Task.checkCancellation()
                return .success(values)
            case .store(let storing):
                let wait = LoopWait<[ScriptValue]?>()
                let work = Task { [store] in wait.resume(returning: await storing.carryOut(in: store)) }
                defer { work.cancel() }
                let values = try await wait.value(within: left, else: nil)
                try Task.checkCancellation()
                guard let values else { throw late(at: turn.waitingLine) }
                return .success(values)
            case nil: return .success([])
            }
        } catch {
            loop.state.drop(call)
            throw error
        }
    }

    private func late(at line: Int?) -> ScriptFault {
        let timeout = script?.limits.timeout ?? .zero
        return ScriptFault(
            .overTime, name: script?.name ?? "", line: line,
            reason: "the call took longer than \(timeout.optionText), the option timeout")
    }

    /// A dry run ends where the script would wait.
    private func drop(_ call: ScriptState.Call, _ turn: ScriptTurn, _ loop: LoopScript, _ exchange: Exchange) {
        exchange.note("would wait for \(turn.wait?.text ?? "") at line \(turn.waitingLine ?? 0)")
        loop.state.drop(call)
        loop.giveBack(turn)
    }

    /// Reports a fault in record and log. A client on this host learns it; others learn only that there was one.
    private func report(_ fault: ScriptFault, _ exchange: Exchange, _ side: GatewayError.Side) -> GatewayError {
        exchange.note("\(fault)")
        WareLog.shared.log(.error, "the script failed: \(fault)")
        let isLocal = exchange.peer?.address?.isLoopback ?? false
        return GatewayError(
            side, .wareFailed, isLocal ? "the script failed: \(fault)" : "the script failed", cause: fault)
    }
}
