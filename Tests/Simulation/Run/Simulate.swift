import Dispatch
import Glibc
import Simulation
import Synchronization

/// `Simulate [--seeds N] [--from SEED] [--script FILE]`: Tests/Simulation/README.md.
@main struct Simulate {
    /// After this many findings, no further world begins.
    private static let mostFindings = 5

    static func main() throws {
        var seeds = 500
        var first: UInt64 = 1
        var arguments = CommandLine.arguments.dropFirst().makeIterator()
        while let argument = arguments.next() {
            let value = arguments.next() ?? ""
            switch argument {
            case "--seeds": seeds = max(1, Int(value) ?? seeds)
            case "--from": first = UInt64(value) ?? first
            case "--script": exit(try repeatScript(value))
            default:
                print("unknown option \(argument); see Tests/Simulation/README.md")
                exit(2)
            }
        }
        exit(run(seeds, from: first))
    }

    /// Each world is on one thread; several worlds run at a time.
    private static func run(_ seeds: Int, from first: UInt64) -> Int32 {
        let failed = Mutex(0)
        let passed = Mutex(0)
        let share = 20
        DispatchQueue.concurrentPerform(iterations: (seeds + share - 1) / share) { part in
            for number in part * share..<min(seeds, (part + 1) * share) {
                guard failed.withLock({ $0 < mostFindings }) else { return }
                guard let text = finding(first &+ UInt64(number)) else {
                    passed.withLock { $0 += 1 }
                    continue
                }
                failed.withLock {
                    $0 += 1
                    print(text)
                }
            }
        }
        let (good, bad) = (passed.withLock { $0 }, failed.withLock { $0 })
        print("\(good) passed, \(bad) failed")
        return bad == 0 ? 0 : 1
    }

    /// The report about a seed that fails: its smallest script, and behind `#` the history of that script.
    private static func finding(_ seed: UInt64) -> String? {
        do {
            guard let finding = try Simulation.run(seed: seed) else { return nil }
            return "FAILED  seed \(seed): \(finding.violations.first ?? "")\n\(finding.script)"
                + finding.history.map { "#   \($0)" }.joined(separator: "\n")
        } catch {
            return "FAILED  seed \(seed): \(error)"
        }
    }

    private static func repeatScript(_ path: String) throws -> Int32 {
        guard let file = fopen(path, "re") else {
            print("\(path) cannot be opened")
            return 2
        }
        defer { fclose(file) }
        var text = ""
        while let line = readLine(from: file) { text += line }
        let outcome = try Simulation.run(script: text)
        for line in outcome.history { print(line) }
        for violation in outcome.violations { print("FAILED  \(violation)") }
        return outcome.violations.isEmpty ? 0 : 1
    }

    private static func readLine(from file: UnsafeMutablePointer<FILE>) -> String? {
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer { free(line) }
        guard getline(&line, &room, file) > 0, let line else { return nil }
        return String(cString: line)
    }
}
