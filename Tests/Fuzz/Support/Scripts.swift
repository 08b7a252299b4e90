@testable import Scripting

/// Scripts in Lua, their patterns, and the values that pass between Lua and its host.
extension Fuzzing {
    /// A host that gives back what it gets.
    private final class EchoHost: ScriptHost {
        static let library = {
            var library = ScriptLibrary()
            library.add(function: "echo", in: "host", number: 0)
            library.add(function: "later", in: "host", number: 1)
            library.add(kind: 0, name: "an object", hasKeys: true)
            library.add(property: "path", number: 0)
            library.add(method: "each", number: 0, iterates: true)
            return library
        }()

        func answer(_ use: ScriptUse) -> ScriptReply {
            if use.action == .function(1) { return use.mayWait ? .later : .refuse("no wait") }
            for place in 0..<use.count {
                guard let value = use.value(place) else { return .refuse("too deep") }
                use.append(value)
            }
            return .done
        }
    }

    /// By the first byte: a script, the statements of one, a pattern with a subject, or a series of values. Nothing may trap, and a state
    /// stays within its memory.
    public static func scripts(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        switch choice & 3 {
        case 0: run(wire)
        case 1: run(Array("return { request = function(req, opt) ".utf8) + wire + Array(" end }".utf8))
        case 2:
            let end = wire.firstIndex(of: 0) ?? wire.count / 2
            search(Array(wire[..<end]), in: Array(wire[end...]))
        default: checkSeries(wire)
        }
    }

    private static func run(_ source: [UInt8]) {
        let limits = ScriptLimits(memory: 1 << 20, callTime: .milliseconds(2), loadTime: .milliseconds(2))
        let host = EchoHost()
        var returned = ScriptValue.missing
        guard
            let state = try? ScriptState(
                source: source, name: "fuzz.lua", functions: ["request"], library: EchoHost.library, limits: limits,
                host: host,
                returned: &returned)
        else { return }
        _ = try? state.set(options: returned)
        guard state.has(function: 0) else { return }
        for _ in 0..<3 {
            var outcome = state.begin(function: 0, arguments: [.object(0), .options], host: host)
            var waits = 0
            while case .waits(let call) = outcome {
                waits += 1
                if waits == 4 {
                    state.drop(call)
                    break
                }
                outcome = state.resume(
                    call, with: waits & 1 == 0 ? .success([.integer(1)]) : .failure(ScriptRefusal("late")), host: host)
            }
            require(state.memory <= limits.memory + 65_536, "the state has \(state.memory) bytes")
        }
    }

    private static func search(_ pattern: [UInt8], in subject: [UInt8]) {
        pattern.withUnsafeBufferPointer { pattern in
            subject.withUnsafeBufferPointer { subject in
                var asked = 0
                var matcher = PatternMatcher(pattern, in: subject) {
                    asked += 1
                    return asked > 20
                }
                guard let range = try? matcher.search(from: 0) else { return }
                require(range.upperBound <= subject.count, "the match ends behind the subject")
                for place in 0..<matcher.captureCount {
                    let capture = matcher.captures[place]
                    require(capture.end == -1 || capture.end >= capture.start, "a capture ends before it begins")
                    require(
                        capture.start <= subject.count && capture.end <= subject.count,
                        "a capture is outside of the subject")
                }
            }
        }
    }

    private static func checkSeries(_ bytes: [UInt8]) {
        guard let value = bytes.withUnsafeBytes({ ScriptSeries.read($0) }) else { return }
        var series = ScriptSeries()
        series.append(value)
        var again = ScriptSeries()
        if let second = series.bytes.withUnsafeBytes({ ScriptSeries.read($0) }) { again.append(second) }
        require(again.bytes == series.bytes, "a value is different after it was written and read")
    }
}
