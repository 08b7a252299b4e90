import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct PatientWorkTests {
    /// Runs on a loop whose clock stands still, unless a step moves it.
    @Test func `the steps of one turn take a few milliseconds, however many there are`() async throws {
        let clock = ManualClock()
        let loop = try EventLoop.start(name: "patient", clock: clock)
        defer { loop.stop() }
        let done = Notes()
        struct Kept: @unchecked Sendable { let work: PatientWork }
        let kept = await loop.submit { Kept(work: PatientWork(loop: loop)) }
        await loop.submit {
            for index in 0..<6 {
                kept.work.add {
                    done.add("\(index)")
                    clock.advance(by: .milliseconds(3))
                }
            }
        }
        #expect(done.all.isEmpty)
        for count in [2, 4, 6, 6] {
            clock.advance(by: .nanoseconds(1))
            for _ in 0..<8 { await loop.submit {} }
            #expect(done.all.count == count)
        }
        await loop.submit { _ = kept }
    }

    @Test func `a step that adds another gives others their turn first`() async throws {
        let clock = ManualClock()
        let loop = try EventLoop.start(name: "patient", clock: clock)
        defer { loop.stop() }
        let done = Notes()
        struct Kept: @unchecked Sendable { let work: PatientWork }
        let kept = await loop.submit { Kept(work: PatientWork(loop: loop)) }
        await loop.submit {
            kept.work.add {
                done.add("a")
                kept.work.add { done.add("a again") }
            }
            kept.work.add { done.add("b") }
        }
        clock.advance(by: .nanoseconds(1))
        for _ in 0..<6 { await loop.submit {} }
        #expect(done.all == ["a", "b"])
        clock.advance(by: .nanoseconds(1))
        for _ in 0..<6 { await loop.submit {} }
        #expect(done.all == ["a", "b", "a again"])
    }
}
