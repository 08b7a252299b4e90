import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

@Suite struct NameMovesTests {
    private final class Told: Sendable {
        private let number = Atomic<Int>(0)

        var count: Int { number.load(ordering: .relaxed) }
        func add() { number.wrappingAdd(1, ordering: .relaxed) }
    }

    private let moves = NameMoves()
    private let told = Told()

    private func note(at milliseconds: Int64) { moves.note(at: LoopInstant(nanoseconds: milliseconds * 1_000_000)) }

    @Test func `the monitor is told at once, and then once in 250 milliseconds at most`() {
        moves.tell { [told] in told.add() }
        for (time, count) in [(1000, 1), (1000, 1), (1249, 1), (1250, 2), (1499, 2), (5000, 3), (5249, 3), (5250, 4)] {
            note(at: Int64(time))
            #expect(told.count == count, "\(time)")
        }
    }

    @Test func `a former time tells nothing`() {
        moves.tell { [told] in told.add() }
        note(at: 1000)
        note(at: 0)
        #expect(told.count == 1)
    }

    @Test func `without a monitor nothing is told, and a new one is told instead of the former`() {
        note(at: 0)
        let other = Told()
        moves.tell { other.add() }
        moves.tell { [told] in told.add() }
        note(at: 250)
        moves.tell(nil)
        note(at: 500)
        #expect(other.count == 0 && told.count == 1)
    }

    @Test func `of several loops that notice it at once, one tells`() async {
        moves.tell { [told] in told.add() }
        for round in 1...50 {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { note(at: Int64(round) * 1000) } }
            }
            #expect(told.count == round)
        }
    }
}
