import HttpWare
import Testing

struct ThreadLocksTests {
    /// Tells when it goes.
    private final class Counted: Sendable {
        let gone: ThreadLock<Int>
        init(_ gone: ThreadLock<Int>) { self.gone = gone }
        deinit { gone.withLock { $0 += 1 } }
    }

    @Test func `each place has a value of its own`() {
        let locks = ThreadLocks(3) { 0 }
        for place in 0..<3 { locks.withLock(of: place) { $0 = place + 1 } }
        #expect((0..<locks.count).map { place in locks.withLock(of: place) { $0 } } == [1, 2, 3])
    }

    @Test func `any number is a place`() {
        let locks = ThreadLocks(4) { 0 }
        for place in [0, 4, -4, Int.max, Int.min, -1] { locks.withLock(of: place) { $0 += 1 } }
        #expect((0..<4).map { place in locks.withLock(of: place) { $0 } } == [4, 0, 0, 2])
        #expect(ThreadLocks(0) { 7 }.withLock(of: 5) { $0 } == 7)
    }

    @Test func `threads change one value in turns`() async {
        let locks = ThreadLocks(2) { 0 }
        await withTaskGroup(of: Void.self) { group in
            for place in 0..<8 {
                group.addTask { for _ in 0..<10_000 { locks.withLock(of: place) { $0 += 1 } } }
            }
        }
        #expect(locks.withLock(of: 0) { $0 } == 40_000)
        #expect(locks.withLock(of: 1) { $0 } == 40_000)
    }

    @Test func `the values go with the locks`() {
        let gone = ThreadLock(0)
        do {
            let locks = ThreadLocks(5) { Counted(gone) }
            #expect(locks.count == 5)
        }
        #expect(gone.withLock { $0 } == 5)
    }
}
