/// Runs seeds and scripts, and finds the smallest script of a seed that fails.
public enum Simulation {
    /// A seed whose world broke an invariant.
    public struct Finding {
        public let seed: UInt64
        public let violations: [String]
        /// The smallest script found that still breaks one.
        public let script: String
        /// The history of that script.
        public let history: [String]
    }

    /// Runs a seed; `nil` if all invariants hold.
    public static func run(seed: UInt64) throws -> Finding? {
        let script = Generator.script(of: seed)
        let outcome = try World.run(script)
        return outcome.violations.isEmpty ? nil : try finding(script, shrinks: true)
    }

    /// Runs the text of a script. Throws if it is not one.
    public static func run(script text: String) throws -> World.Outcome {
        guard let script = Script(text) else { throw UnreadableScript() }
        return try World.run(script, keepsHistory: true)
    }

    /// The text is not one of a script.
    public struct UnreadableScript: Error {}

    /// The text of a seed's script.
    public static func script(of seed: UInt64) -> String { Generator.script(of: seed).text }

    /// The digest of what happens in a seed's world.
    public static func digest(of seed: UInt64) throws -> UInt64 { try World.run(Generator.script(of: seed)).digest }

    private static func finding(_ script: Script, shrinks: Bool) throws -> Finding {
        let least = try Shrinker.least(script)
        let outcome = try World.run(least, keepsHistory: true)
        return Finding(
            seed: script.seed, violations: outcome.violations, script: least.text, history: outcome.history)
    }
}

/// Finds a smaller script that still breaks an invariant: it leaves out steps, then numbers, then halves what is left.
enum Shrinker {
    private static let mostRuns = 400

    static func least(_ script: Script) throws -> Script {
        var least = script
        var runs = 0
        func breaks(_ candidate: Script) throws -> Bool {
            runs += 1
            return try runs < mostRuns && !World.run(candidate).violations.isEmpty
        }
        var hasChanged = true
        while hasChanged, runs < mostRuns {
            hasChanged = false
            var size = max(1, least.steps.count / 2)
            while size >= 1 {
                var start = 0
                while start < least.steps.count {
                    var candidate = least
                    candidate.steps.removeSubrange(start..<min(start + size, least.steps.count))
                    if try breaks(candidate) {
                        least = candidate
                        hasChanged = true
                    } else {
                        start += size
                    }
                }
                size /= 2
            }
            if !least.isCalm {
                var candidate = least
                candidate.isCalm = true
                if try breaks(candidate) {
                    least = candidate
                    hasChanged = true
                }
            }
            for index in least.steps.indices {
                for name in least.steps[index].names {
                    for value in [0, least.steps[index][name] / 2] where value != least.steps[index][name] {
                        var candidate = least
                        candidate.steps[index][name] = value
                        if try breaks(candidate) {
                            least = candidate
                            hasChanged = true
                            break
                        }
                    }
                }
            }
        }
        return least
    }
}
