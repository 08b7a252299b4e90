public import HttpWare
import Scripting

/// Runs a script alone, without a gateway, and describes its effects: for `httpware script`.
public final class ScriptTrial {
    /// The script has an error, or its table has one.
    public struct Fault: Error, CustomStringConvertible {
        /// One line for each error.
        public let lines: [String]

        public init(lines: [String]) { self.lines = lines }

        public var description: String { lines.joined(separator: "\n") }
    }

    /// The effects of one half of the script.
    public struct Effects {
        /// The decision: `passes`, `answers 404`, `would wait for http.fetch users at line 3`.
        public var decision: String
        /// Whether the script failed.
        public var isFailed = false
        /// The changes of the message, one a line, then notes and lines for the log.
        public var changes: [String] = []
    }

    private let script: LoadedScript
    private let loop: LoopScript
    private let turn: ScriptTurn
    /// Mistakes that do not prevent the use of the script, one a line.
    public let warnings: [String]

    /// Whether the script has the halves.
    public var hasRequest: Bool { script.hasRequest }
    public var hasResponse: Bool { script.hasResponse }

    /// Compiles a script. Its options have their defaults, or the values that are given as texts: `header` `X-Tenant`.
    public init(_ source: [UInt8], name: String, options: [(name: String, value: String)] = []) throws(Fault) {
        var mistakes = LoadedScript.Mistakes()
        var reader = ScriptOptions()
        let given = ConfigNode(
            .map(
                options.map {
                    .init(key: $0.name, location: .code, value: ConfigNode(.scalar($0.value, isQuoted: false)))
                }))
        do throws(ScriptFault) {
            script = try LoadedScript(source, name: name, limits: .init(), mistakes: &mistakes) { defaults in
                reader.read(given, defaults: defaults)
            }
            loop = LoopScript(script, try script.makeState())
        } catch {
            throw Fault(lines: ["\(error)"])
        }
        mistakes.errors += reader.mistakes.map { "options.\($0.key): \($0.message)" }
        guard mistakes.errors.isEmpty else { throw Fault(lines: mistakes.errors.map { "\(name): \($0)" }) }
        warnings = mistakes.warnings.map { "\(name): \($0)" }
        turn = ScriptTurn(script)
    }

    /// Runs `request`, which may change the request.
    public func run(_ request: inout HttpRequest) -> Effects {
        let former = request
        turn.begin(in: nil)
        let outcome = withUnsafeMutablePointer(to: &request) { request in
            turn.request = request
            defer { turn.request = nil }
            return loop.state.begin(
                function: LoadedScript.Function.request.rawValue, arguments: Script.ofRequest, host: turn)
        }
        var effects = effects(outcome, "passes")
        effects.changes.insert(contentsOf: ScriptTrial.changes(former, request), at: 0)
        return effects
    }

    /// Runs `response` for a request, which may change the response.
    public func run(_ response: inout HttpResponse, to request: HttpRequest) -> Effects {
        let former = response
        turn.begin(after: request)
        let outcome = withUnsafeMutablePointer(to: &response) { response in
            turn.response = response
            defer { turn.response = nil }
            return loop.state.begin(
                function: LoadedScript.Function.response.rawValue, arguments: Script.ofResponse, host: turn)
        }
        var effects = effects(outcome, turn.replay.map { "asks for a replay after \($0.optionText)" } ?? "passes")
        var changes = ScriptTrial.changes(former.fields, response.fields)
        if former.status != response.status {
            changes.insert("status: \(former.status.code) → \(response.status.code)", at: 0)
        }
        if former.content.bytes != response.content.bytes { changes.append(ScriptTrial.content(response.content)) }
        effects.changes.insert(contentsOf: changes, at: 0)
        return effects
    }

    /// The mean time of a call of `request`, or of `response` if there is one.
    public func time(_ request: HttpRequest, _ response: HttpResponse? = nil) -> Duration {
        let count = 10_000
        let function: LoadedScript.Function = response == nil ? .request : .response
        let arguments = response == nil ? Script.ofRequest : Script.ofResponse
        let duration = ContinuousClock().measure {
            for _ in 0..<count {
                var message = request
                var answer = response ?? HttpResponse(.ok)
                if response == nil { turn.begin(in: nil) } else { turn.begin(after: request) }
                withUnsafeMutablePointer(to: &message) { message in
                    withUnsafeMutablePointer(to: &answer) { answer in
                        if response == nil { turn.request = message } else { turn.response = answer }
                        let outcome = loop.state.begin(function: function.rawValue, arguments: arguments, host: turn)
                        if case .waits(let call) = outcome { loop.state.drop(call) }
                        turn.request = nil
                        turn.response = nil
                    }
                }
            }
        }
        return duration / count
    }

    private func effects(_ outcome: ScriptState.Outcome, _ passing: String) -> Effects {
        var effects: Effects
        switch outcome {
        case .failed(let fault): effects = Effects(decision: "fails: \(fault)", isFailed: true)
        case .waits(let call):
            loop.state.drop(call)
            effects = Effects(decision: "would wait for \(turn.wait?.text ?? "") at line \(turn.waitingLine ?? 0)")
        case .done(let value):
            do throws(ScriptMisuse) {
                if let response = try ScriptVerdict.response(value) {
                    effects = Effects(decision: "answers \(response.status.code)")
                    effects.changes = ScriptTrial.changes(HttpFields(), response.fields)
                    if !response.content.isEmpty { effects.changes.append(ScriptTrial.content(response.content)) }
                } else {
                    effects = Effects(decision: passing)
                }
            } catch {
                effects = Effects(decision: "fails: \(error.reason)", isFailed: true)
            }
        }
        effects.changes += turn.notes
        return effects
    }

    private static func changes(_ former: HttpRequest, _ request: HttpRequest) -> [String] {
        var changes: [String] = []
        func compare(_ name: String, _ old: String, _ new: String) {
            if old != new { changes.append("\(name): \(old) → \(new)") }
        }
        compare("method", former.method.name, request.method.name)
        compare("authority", former.authority?.description ?? "", request.authority?.description ?? "")
        compare("target", former.upstreamTarget, request.upstreamTarget)
        changes += Self.changes(former.fields, request.fields)
        if former.content.bytes != request.content.bytes { changes.append(content(request.content)) }
        return changes
    }

    /// The removed and the added field lines.
    private static func changes(_ former: HttpFields, _ fields: HttpFields) -> [String] {
        func lines(_ fields: HttpFields) -> [String] {
            fields.rawLines.map { "\($0.name.text): \(String(decoding: $0.value, as: UTF8.self))" }
        }
        let old = lines(former)
        let new = lines(fields)
        return old.filter { !new.contains($0) }.map { "- \($0)" } + new.filter { !old.contains($0) }.map { "+ \($0)" }
    }

    private static func content(_ content: HttpContent) -> String {
        let bytes = content.bytes ?? []
        let text = String(decoding: bytes.prefix(200).map { $0 < 0x20 ? 0x20 : $0 }, as: UTF8.self)
        return "content: \(bytes.count) bytes: \(text)"
    }
}

extension ScriptTrial {
    /// Reads a response from a text: a status line such as `HTTP/1.1 200 OK` or `200`, field lines, an empty line, content. `nil` if it is
    /// not one.
    public static func response(_ text: String) -> HttpResponse? {
        var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)[...]
        guard let first = lines.popFirst() else { return nil }
        let words = first.split(separator: " ")
        let code = words.first?.hasPrefix("HTTP/") == true ? words.dropFirst().first : words.first
        guard let status = code.flatMap({ Int($0) }).flatMap({ HttpStatus($0) }) else { return nil }
        var response = HttpResponse(status)
        while let line = lines.popFirst(), !line.isEmpty {
            guard let colon = line.firstIndex(of: ":"), let name = FieldName(String(line[..<colon])),
                (try? response.fields.append(name, String(line[line.index(after: colon)...].drop { $0 == " " }))) != nil
            else { return nil }
        }
        if !lines.isEmpty { response.content = .text(lines.joined(separator: "\n")) }
        return response
    }
}
