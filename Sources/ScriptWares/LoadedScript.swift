import HttpWare
import Scripting

/// A script that was compiled and whose returned table was read, when the configuration was loaded. Each loop makes its own state of it.
final class LoadedScript: Sendable {
    /// The limits of calls.
    struct Limits: Sendable, Equatable {
        var state = ScriptLimits()
        /// From the beginning of a call to its end, with waits.
        var timeout = Duration.seconds(5)
        /// The most calls of `http.fetch` and of the store in one call.
        var calls = 8
        /// The hosts that `http.fetch` may name in a URL.
        var allowedHosts: [String] = []
    }

    /// The functions that the gateway calls. A case's value is its place in `names`.
    enum Function: Int {
        case request, response, ended
    }

    static let names: [StaticString] = ["request", "response", "ended"]
    /// The members of the returned table.
    static let members = ["about", "options", "content", "request", "response", "ended", "replays", "failsOpen"]

    /// The script's name, as errors show it.
    let name: String
    let limits: Limits
    let hasRequest: Bool
    let hasResponse: Bool
    let hasEnded: Bool
    let replays: Bool
    /// Whether exchanges continue after an error; `nil` if the script does not say so.
    let failsOpen: Bool?
    let requestContent: Int?
    let responseContent: Int?
    private let source: [UInt8]
    private let options: ScriptValue

    /// The parts of a returned table that are wrong, each with the text of its error or its warning.
    struct Mistakes {
        var errors: [String] = []
        var warnings: [String] = []
    }

    /// Compiles a script and reads its table. Throws the script's own error. Mistakes in the table are added to `mistakes`.
    ///
    /// - Parameter read: Makes the options from their defaults.
    init(
        _ source: [UInt8], name: String, limits: Limits, mistakes: inout Mistakes,
        options read: (ScriptValue) -> ScriptValue
    ) throws(ScriptFault) {
        self.source = source
        self.name = name
        self.limits = limits
        var returned = ScriptValue.missing
        let state = try ScriptState(
            source: source, name: name, functions: Self.names, library: .ofWare, limits: limits.state, host: MainHost(),
            returned: &returned)
        hasRequest = state.has(function: Function.request.rawValue)
        hasResponse = state.has(function: Function.response.rawValue)
        hasEnded = state.has(function: Function.ended.rawValue)
        var table = TableReader(returned, mistakes)
        table.checkNames()
        replays = table.boolean("replays") ?? false
        failsOpen = table.boolean("failsOpen")
        requestContent = table.size("request")
        responseContent = table.size("response")
        mistakes = table.mistakes
        let defaults = returned["options"]
        switch defaults {
        case .missing: break
        case .table(let members):
            let text = String(decoding: source, as: UTF8.self)
            for name in members.compactMap({ $0.key.string }) where text.ranges(of: name).count < 2 {
                mistakes.warnings.append("the script does not use its option \(name.quotedForErrors)")
            }
        case .list(let values) where values.isEmpty: break
        default: mistakes.errors.append("options must be a table of names and defaults")
        }
        let given = read(defaults)
        options = if case .table = given { given } else { .table([]) }
    }

    /// A new state for a loop.
    func makeState() throws(ScriptFault) -> ScriptState {
        var returned = ScriptValue.missing
        let state = try ScriptState(
            source: source, name: name, functions: Self.names, library: .ofWare, limits: limits.state, host: MainHost(),
            returned: &returned)
        try state.set(options: options)
        return state
    }

    /// Answers the main part of a script, which has no exchange.
    private final class MainHost: ScriptHost {
        private var functions = ScriptFunctions()

        func answer(_ use: ScriptUse) -> ScriptReply {
            guard case .function(let number) = use.action else { return .refuse("there is no request here") }
            do {
                let values = try functions.call(ScriptFunction.all[number], use, now: SystemLoopClock().wallNow())
                for value in values { use.append(value) }
                return .done
            } catch let error as ScriptMisuse {
                return .refuse(error.reason)
            } catch {
                return .refuse("\(error)")
            }
        }
    }

    /// Reads the members of a returned table.
    private struct TableReader {
        private let table: ScriptValue
        var mistakes: Mistakes

        init(_ table: ScriptValue, _ mistakes: Mistakes) {
            self.table = table
            self.mistakes = mistakes
        }

        mutating func checkNames() {
            guard case .table(let members) = table else {
                mistakes.errors.append(
                    "the returned table has no functions: return { request = function(req, opt, x) … end }")
                return
            }
            for member in members {
                let name = member.key.bytes.map { String(decoding: $0, as: UTF8.self) } ?? "?"
                if !LoadedScript.members.contains(name) {
                    mistakes.warnings.append(
                        "the returned table has an unknown member \(name.quotedForErrors)\(didYouMean(name, among: LoadedScript.members))"
                    )
                }
            }
            for name in ["request", "response", "ended"] where ![.missing, .other].contains(table[name]) {
                mistakes.errors.append("\(name) must be a function")
            }
        }

        mutating func boolean(_ name: String) -> Bool? {
            switch table[name] {
            case .missing: return nil
            case .boolean(let value): return value
            default:
                mistakes.errors.append("\(name) must be true or false")
                return nil
            }
        }

        /// The content that a half of the script needs, in bytes.
        mutating func size(_ half: String) -> Int? {
            switch table["content"][half] {
            case .missing: return nil
            case .integer(let bytes) where (1...(64 << 20)).contains(bytes): return Int(bytes)
            case .string(let text):
                do throws(OptionMistake) {
                    let size = try ByteCount(optionText: String(decoding: text, as: UTF8.self))
                    guard (1...(64 << 20)).contains(size.bytes) else { throw OptionMistake("write at most 64MiB") }
                    return size.bytes
                } catch {
                    mistakes.errors.append("content.\(half) must be a byte count, such as \"64KiB\"; \(error.hint)")
                    return nil
                }
            default:
                mistakes.errors.append("content.\(half) must be a byte count, such as \"64KiB\"")
                return nil
            }
        }
    }
}
