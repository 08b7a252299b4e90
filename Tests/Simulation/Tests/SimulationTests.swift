import Testing

@testable import Simulation

@Suite struct SimulationTests {
    private static let seedsOfOneTest = 50

    @Test(arguments: 0..<10) func `the seeds of make test break no invariant`(part: Int) throws {
        for number in 1...SimulationTests.seedsOfOneTest {
            let seed = UInt64(part * SimulationTests.seedsOfOneTest + number)
            if let finding = try Simulation.run(seed: seed) {
                Issue.record("seed \(seed): \(finding.violations)\n\(finding.script)")
            }
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64]) func `a seed's world is the same each time`(seed: UInt64)
        throws
    {
        let first = try Simulation.digest(of: seed)
        #expect(try Simulation.digest(of: seed) == first)
    }

    @Test func `a script is read as it is written`() throws {
        for seed in 1...100 as ClosedRange<UInt64> {
            let script = Generator.script(of: seed)
            #expect(Script(script.text) == script)
        }
    }

    @Test func `a text that is not a script is refused`() {
        for text in ["", "seed", "seed x", "seed 1\nrequest", "seed 1\n1 request 1 a", "seed 1\n1 request 1 a=b"] {
            #expect(Script(text) == nil, "\(text)")
        }
    }

    @Test func `an unknown step is a violation`() throws {
        let outcome = try Simulation.run(script: "seed 1\n0 nonsense 1\n")
        #expect(outcome.violations.count == 1)
    }
}
