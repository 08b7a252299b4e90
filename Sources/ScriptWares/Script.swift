import HttpCaching
public import HttpWare
import Scripting
import Wares

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
            let turn = loop.takeTurn(in: exchange)
            let outcome = withUnsafeMutablePointer(to: &request) { request in
                turn.request = request
                defer { turn.request = nil }
                return loop.state.begin(
                    function: LoadedScript.Function.request.rawValue, arguments: Self.ofRequest, host: turn)
            }
            guard case .waits(let call) = outcome else {
                defer { loop.giveBack(turn) }
                return try Self.verdict(outcome, script)
            }
            if exchange.isDryRun {
                drop(call, turn, loop, exchange)
                return .wait { _, _ in .pass }
            }
            let deadline = exchange.now + script.limits.timeout
            return .wait { request, exchange in
                var outcome = outcome
                do {
                    while case .waits(let call) = outcome {
                        let result = try await carryOut(turn, call, loop, exchange, until: deadline)
                        outcome = withUnsafeMutablePointer(to: &request) { request in
                            turn.request = request
                            defer { turn.request = nil }
                            return loop.state.resume(call, with: result, host: turn)
                        }
                    }
                    return try Self.verdict(outcome, script)
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
            let turn = loop.takeTurn(in: exchange)
            let outcome = withUnsafeMutablePointer(to: &response) { response in
                turn.response = response
                defer { turn.response = nil }
                return loop.state.begin(
                    function: LoadedScript.Function.response.rawValue, arguments: Self.ofResponse, host: turn)
            }
            guard case .waits(let call) = outcome else {
                defer { loop.giveBack(turn) }
                return try Self.answer(outcome, turn, script)
            }
            if exchange.isDryRun {
                drop(call, turn, loop, exchange)
                return .wait { _, _ in .pass }
            }
            let deadline = exchange.now + script.limits.timeout
            return .wait { response, exchange in
                var outcome = outcome
                do {
                    while case .waits(let call) = outcome {
                        let result = try await carryOut(turn, call, loop, exchange, until: deadline)
                        outcome = withUnsafeMutablePointer(to: &response) { response in
                            turn.response = response
                            defer { turn.response = nil }
                            return loop.state.resume(call, with: result, host: turn)
                        }
                    }
                    return try Self.answer(outcome, turn, script)
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
            let outcome = loop.state.begin(
                function: LoadedScript.Function.ended.rawValue,
                arguments: [.object(ScriptKind.exchange.rawValue), .options], host: turn)
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
            guard left > .zero else { throw late(turn) }
            switch turn.wait {
            case .sleep(let duration):
                try await exchange.sleep(for: min(duration, left))
                guard duration <= left else { throw late(turn) }
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
                guard let values else { throw late(turn) }
                return .success(values)
            case nil: return .success([])
            }
        } catch {
            loop.state.drop(call)
            throw error
        }
    }

    private func late(_ turn: ScriptTurn) -> ScriptFault {
        let timeout = script?.limits.timeout ?? .zero
        return ScriptFault(
            .overTime, name: script?.name ?? "", line: turn.waitingLine,
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

extension Script: ConfigurableWare {
    public static let name: WareName = "script"
    public static let about = WareAbout(
        "Runs a script in Lua that can read, change and answer requests and responses.",
        source: "Lua 5.4",
        example: #"""
            - script: { file: conf/wares/tenant.lua, options: { header: X-Tenant } }
            - script:
                source: |
                  return {
                    request = function(req)
                      if req.path:match("^/old/") then return { status = 410, text = "gone\n" } end
                    end,
                  }
            """#,
        details: #"""
            The script returns a table with the functions `request` and `response`, and with the names and defaults of its options.
            `request` gets the request, the options and the exchange. If it returns nothing, the request passes. If it returns a
            table with `status`, `fields` and one of `text`, `html`, `json` or `body`, this is the response, and nothing goes
            upstream. `response` gets the response in place of the request, and the response that it returns replaces that one.

            Each loop has a state of its own, of at most `memory`. A call runs for at most `time`, and takes at most `timeout`
            with its waits for `http.fetch`, `store` and `sleep`. A script that exceeds a limit or has an error fails: the exchange is
            answered with 500, or 502 on the way back. With `onError: open`, the exchange continues unchanged.

            A script has no access to files, processes or the network, except by `http.fetch`: to services by their names, and
            to hosts that `allowUrls` lists. Global variables cannot be changed. The script is part of the configuration: a
            changed file is loaded by a reload, and one with an error keeps the running configuration.
            """#,
        otherNames: ["lua", "luaScript", "plugin"])

    public init(options: inout OptionsReader) {
        var limits = LoadedScript.Limits()
        var file: Located<FilePath>?
        var source: Located<String>?
        var memory = ByteCount.mebibytes(16)
        var mode: FailureMode?
        var store: NamedStore?
        options.read("file", into: &file, doc: "file with the script, at most 256KiB; only one of file and source")
        options.read("source", into: &source, doc: "the script itself; only one of file and source")
        options.requireOne(of: "file", "source")
        let given = options.readNode("options", type: "map", doc: "values of the script's own options")
        options.read(
            "memory", into: &memory, in: .mebibytes(1) ... .gibibytes(1),
            doc: "memory of the script's state on each loop")
        options.read(
            "time", into: &limits.state.callTime, in: .milliseconds(1) ... .milliseconds(50),
            doc: "maximum time of running in one call")
        options.read(
            "timeout", into: &limits.timeout, in: .milliseconds(1) ... .seconds(3600),
            doc: "maximum time of one call with its waits")
        options.read(
            "maxCalls", into: &limits.calls, in: 0...1000, doc: "maximum calls of http.fetch and store in one call")
        options.readStore("store", into: &store, doc: "store of the script's values: memory, or the name of one")
        options.read("allowUrls", into: &limits.allowedHosts, doc: "hosts that http.fetch may name in a URL")
        options.read(
            "onError", into: &mode,
            doc:
                "the treatment of an exchange whose script fails: closed answers 500, or 502 on the way back, open continues unchanged; by default the script decides, else closed"
        )
        limits.state.memory = memory.bytes
        let script = Script.load(file, source, given, limits, &options)
        self.init(
            script, failsOpen: mode.map { $0 == .open } ?? script?.failsOpen ?? false,
            // Without a configuration, no store can be found. That is reported as an error already.
            store: (store ?? NamedStore(.builtin)).records)
    }

    private static let largest = 256 << 10

    private static func load(
        _ file: Located<FilePath>?, _ source: Located<String>?, _ given: ConfigNode?, _ limits: LoadedScript.Limits,
        _ options: inout OptionsReader
    ) -> LoadedScript? {
        guard !options.isDescribing else { return nil }
        let key: String
        let name: String
        let bytes: [UInt8]
        if let file {
            key = "file"
            let path = options.joined(file.value.path, writtenIn: file.location.file)
            guard let content = LoadedFile.read(path, "file", upTo: largest, &options) else { return nil }
            name = file.value.path
            bytes = content
        } else if let source {
            key = "source"
            name = "source"
            bytes = Array(source.value.utf8)
            guard bytes.count <= largest else {
                options.fail(at: key, "is larger than 256KiB")
                return nil
            }
        } else {
            return nil
        }
        /// A line of the script's file; for a script in the configuration, its place there.
        func place(_ line: Int?) -> SourceLocation {
            guard let file else { return options.location(of: key) }
            return SourceLocation(
                file: FilePath.joined(file.value.path, writtenIn: file.location.file), line: line ?? 1, column: 1)
        }
        var mistakes = LoadedScript.Mistakes()
        var reader = ScriptOptions()
        do {
            let script = try LoadedScript(bytes, name: name, limits: limits, mistakes: &mistakes) { defaults in
                reader.read(given, defaults: defaults)
            }
            options.noteNames(in: String(decoding: bytes, as: UTF8.self), of: "services")
            for warning in mistakes.warnings { options.warn(at: key, in: place(nil), warning) }
            for error in mistakes.errors { options.fail(at: key, in: place(nil), error) }
            for mistake in reader.mistakes {
                options.fail(
                    at: mistake.key.isEmpty ? "options" : "options.\(mistake.key)", in: mistake.location,
                    mistake.message)
            }
            return script
        } catch {
            let line = file == nil ? error.line.map { "line \($0): " } ?? "" : ""
            options.fail(at: key, in: place(error.line), line + error.reason)
            return nil
        }
    }
}
