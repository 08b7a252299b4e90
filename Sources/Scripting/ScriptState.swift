internal import CLuaShims

/// A state of Lua with one script: its functions, and the values that its main part has made. Not shared between threads.
///
/// The state has limits for memory, time and the length of strings, and offers only functions that stay within them. It has no input or
/// output, and reads no bytecode. Each call of the script's functions has a thread of Lua of its own, so that many calls can wait at once.
public final class ScriptState {
    /// An argument of a call.
    public enum Argument: Sendable {
        /// The options, which the script cannot change.
        case options
        /// The call's object of a kind.
        case object(Int)

        fileprivate var code: Int32 {
            switch self {
            case .options: SCRIPT_OPTIONS
            case .object(let kind): Int32(kind)
            }
        }
    }

    /// A call that waits for its host.
    public struct Call: Sendable {
        fileprivate let number: Int32
    }

    /// The way in which a run ended.
    public enum Outcome: Sendable {
        /// The call has ended with its first result.
        case done(ScriptValue)
        /// The host answered `later`. Continue with `resume`, or give up with `drop`.
        case waits(Call)
        /// The call has ended with an error.
        case failed(ScriptFault)
    }

    /// The script's name, as errors show it.
    public let name: String
    private let state: OpaquePointer
    /// The host of the call that runs, which the caller keeps.
    private unowned(unsafe) var host: (any ScriptHost)?
    /// Whether the state has exceeded its memory. All its calls have ended then, and no further one begins.
    public private(set) var isDead = false

    /// The nanoseconds that the last run of a call took, or 0 if it was short.
    public var lastRun: Int64 { script_elapsed(state) }

    /// The bytes that the state occupies.
    public var memory: Int { script_memory(state) }

    /// Makes a state, compiles a script and runs its main part.
    ///
    /// - Parameters:
    ///   - functions: The names of the functions in the returned table that can be called, at most eight. A call names its place here.
    ///   - host: Answers the main part. It cannot wait.
    ///   - returned: The table that the script returns, where each function is `other`.
    public init(
        source: [UInt8], name: String, functions: [StaticString], library: ScriptLibrary,
        limits: ScriptLimits = ScriptLimits(), host: any ScriptHost, returned: inout ScriptValue
    ) throws(ScriptFault) {
        self.name = name
        var shared = script_host(context: nil, use: ScriptState.use, match: ScriptState.match)
        var bounds = script_limits(
            memory: limits.memory, string: limits.string, load_time: ScriptState.nanoseconds(limits.loadTime),
            call_time: ScriptState.nanoseconds(limits.callTime))
        guard let state = script_make(&bounds, &shared) else {
            throw ScriptFault(.overMemory, name: name, line: nil, reason: "there is no memory for the script's state")
        }
        self.state = state
        script_set_context(state, Unmanaged.passUnretained(self).toOpaque())
        for function in library.functions {
            try check(script_add_function(state, function.library, function.name, function.number))
        }
        for kind in library.kinds {
            try check(script_add_kind(state, kind.number, kind.name, kind.hasKeys ? 1 : 0))
            for property in kind.properties {
                try check(script_add_property(state, kind.number, property.name, property.number))
            }
            for method in kind.methods {
                try check(script_add_method(state, kind.number, method.name, method.number, method.iterates ? 1 : 0))
            }
        }
        let names: [UnsafePointer<CChar>?] = functions.map {
            UnsafeRawPointer($0.utf8Start).assumingMemoryBound(to: CChar.self)
        }
        self.host = host
        let status = source.withUnsafeBufferPointer {
            script_load(state, $0.baseAddress, $0.count, "@\(name)", names, Int32(names.count))
        }
        self.host = nil
        try check(status)
        returned = answer() ?? .missing
    }

    deinit { script_free(state) }

    /// Whether the script has the function.
    public func has(function: Int) -> Bool { script_has_function(state, Int32(function)) != 0 }

    /// Gives the script its options, which it gets as an argument.
    public func set(options: ScriptValue) throws(ScriptFault) {
        var series = ScriptSeries()
        series.append(options)
        script_answer_begin(state)
        _ = series.bytes.withUnsafeBytes { script_answer_append(state, $0.baseAddress, $0.count) }
        try check(script_set_options(state))
    }

    /// Begins a call.
    public func begin(function: Int, arguments: [Argument], host: any ScriptHost) -> Outcome {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: arguments.count) { codes in
            for (place, argument) in arguments.enumerated() { codes[place] = argument.code }
            var number: Int32 = -1
            self.host = host
            let status = script_begin(state, Int32(function), codes.baseAddress, Int32(arguments.count), &number)
            self.host = nil
            return outcome(status, Call(number: number))
        }
    }

    /// Continues a call with the results of the function that it waits for, or with an error.
    public func resume(_ call: Call, with result: Result<[ScriptValue], ScriptRefusal>, host: any ScriptHost) -> Outcome
    {
        script_answer_begin(state)
        let reply: script_reply
        switch result {
        case .success(let values):
            var series = ScriptSeries()
            for value in values { series.append(value) }
            _ = series.bytes.withUnsafeBytes { script_answer_append(state, $0.baseAddress, $0.count) }
            reply = SCRIPT_REPLIES
        case .failure(let refusal):
            refuse(refusal.reason)
            reply = SCRIPT_REFUSES
        }
        self.host = host
        let status = script_continue(state, call.number, Int32(reply.rawValue))
        self.host = nil
        return outcome(status, call)
    }

    /// Gives up a call that waits. The script is not told.
    public func drop(_ call: Call) { script_drop(state, call.number) }

    private func outcome(_ status: Int32, _ call: Call) -> Outcome {
        switch script_status(UInt32(status)) {
        case SCRIPT_DONE:
            guard let value = answer() else {
                return .failed(
                    ScriptFault(.error, name: name, line: nil, reason: "the returned value is nested too deeply"))
            }
            return .done(value)
        case SCRIPT_WAITS: return .waits(call)
        default: return .failed(fault(status))
        }
    }

    private func check(_ status: Int32) throws(ScriptFault) {
        if status != SCRIPT_DONE.rawValue { throw fault(status) }
    }

    private func fault(_ status: Int32) -> ScriptFault {
        var count = 0
        var line: Int32 = 0
        let bytes = UnsafeBufferPointer(start: script_message(state, &count, &line), count: count)
        let kind: ScriptFault.Kind
        switch script_status(UInt32(status)) {
        case SCRIPT_OVERTIME: kind = .overTime
        case SCRIPT_OVERMEMORY:
            kind = .overMemory
            isDead = true
        default: kind = .error
        }
        return ScriptFault(kind, name: name, line: Int(line), text: bytes)
    }

    private func answer() -> ScriptValue? {
        var count = 0
        let bytes = script_answer(state, &count)
        return ScriptSeries.read(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    private func refuse(_ reason: String) {
        script_answer_begin(state)
        var reason = reason
        reason.withUTF8 { _ = script_answer_append(state, $0.baseAddress, $0.count) }
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        guard seconds < 1_000_000_000 else { return .max }
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    // C's side of the host. Lua calls these functions through C, which raises their errors after they have returned. The context is the
    // state itself, which is alive while it runs.

    private static let use: @convention(c) (UnsafeMutableRawPointer?, Int32, Int32, Int32) -> Int32 = {
        context, use, kind, number in
        guard let context else { return Int32(SCRIPT_REFUSES.rawValue) }
        return Unmanaged<ScriptState>.fromOpaque(context)._withUnsafeGuaranteedRef {
            $0.answer(script_use(UInt32(use)), kind: Int(kind), number: Int(number))
        }
    }

    private func answer(_ use: script_use, kind: Int, number: Int) -> Int32 {
        let action: ScriptAction
        switch use {
        case SCRIPT_FUNCTION: action = .function(number)
        case SCRIPT_METHOD: action = .method(kind: kind, number)
        case SCRIPT_READ: action = .read(kind: kind, number)
        case SCRIPT_WRITE: action = .write(kind: kind, number)
        case SCRIPT_READ_KEY: action = .readKey(kind: kind)
        default: action = .writeKey(kind: kind)
        }
        switch host?.answer(ScriptUse(state: state, action: action)) {
        case .done: return Int32(SCRIPT_REPLIES.rawValue)
        case .later: return Int32(SCRIPT_LATER.rawValue)
        case .refuse(let reason):
            refuse(reason)
            return Int32(SCRIPT_REFUSES.rawValue)
        case nil: return Int32(SCRIPT_REFUSES.rawValue)
        }
    }

    private static let match:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafePointer<UInt8>?, Int, UnsafePointer<UInt8>?, Int, Int, Int32,
            UnsafeMutablePointer<script_match>?
        ) -> Int32 = { context, subject, subjectCount, pattern, patternCount, from, mayAnchor, found in
            guard let context, let found else { return -2 }
            let state = Unmanaged<ScriptState>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.state }
            var matcher = PatternMatcher(
                UnsafeBufferPointer(start: pattern, count: patternCount),
                in: UnsafeBufferPointer(start: subject, count: subjectCount)
            ) { script_is_over(state) != 0 }
            do throws(PatternMatcher.Fault) {
                guard let range = try matcher.search(from: from, mayAnchor: mayAnchor != 0) else { return 0 }
                found.pointee.start = Int64(range.lowerBound)
                found.pointee.end = Int64(range.upperBound)
                found.pointee.count = Int32(matcher.captureCount)
                withUnsafeMutablePointer(to: &found.pointee.captures) { captures in
                    captures.withMemoryRebound(to: script_range.self, capacity: 32) { captures in
                        for place in 0..<matcher.captureCount {
                            captures[place].start = Int64(matcher.captures[place].start)
                            captures[place].end = Int64(matcher.captures[place].end)
                        }
                    }
                }
                return 1
            } catch {
                guard case .invalid(let reason) = error else { return -2 }
                found.pointee.fault = UnsafeRawPointer(reason.text.utf8Start).assumingMemoryBound(to: CChar.self)
                return -1
            }
        }
}

/// The host's refusal of a use, whose answer came later.
public struct ScriptRefusal: Error, Sendable, Equatable {
    public let reason: String

    public init(_ reason: String) { self.reason = reason }
}
