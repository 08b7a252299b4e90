import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct PatientWorkTests {
    /// Unchecked: used on its loop only.
    private struct Stage: @unchecked Sendable {
        let work: PatientWork
        let loop: EventLoop
        let notes: Notes

        /// Notes the end of each of the next turns.
        func noteTurns(_ left: Int) {
            guard left > 0 else { return }
            loop.nextTurn {
                notes.add("|")
                noteTurns(left - 1)
            }
        }
    }

    /// Runs the work of a test on a loop whose clock stands still, unless a step moves it. Returns what was done, and the turns.
    private func run(_ body: @escaping @Sendable (Stage, ManualClock) -> Void) async throws -> [String] {
        let clock = ManualClock()
        let loop = try EventLoop.start(name: "patient", clock: clock)
        defer { loop.stop() }
        let notes = Notes()
        let stage = await loop.submit { Stage(work: PatientWork(loop: loop), loop: loop, notes: notes) }
        await loop.submit {
            body(stage, clock)
            stage.noteTurns(4)
        }
        for _ in 0..<8 { await loop.submit {} }
        await loop.submit { _ = stage }
        return notes.all
    }

    @Test func `the steps of one turn take a few milliseconds, however many there are`() async throws {
        let done = try await run { stage, clock in
            for index in 0..<6 {
                stage.work.add {
                    stage.notes.add("\(index)")
                    clock.advance(by: .milliseconds(3))
                }
            }
        }
        #expect(done == ["0", "1", "|", "2", "3", "|", "4", "5", "|", "|"])
    }

    @Test func `a step that adds another gives others their turn first`() async throws {
        let done = try await run { stage, _ in
            stage.work.add {
                stage.notes.add("a")
                stage.work.add { stage.notes.add("a again") }
            }
            stage.work.add { stage.notes.add("b") }
        }
        #expect(done == ["a", "b", "|", "a again", "|", "|", "|"])
    }
}
