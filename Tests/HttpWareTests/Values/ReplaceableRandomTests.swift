import Testing

@testable import HttpWare

@Suite struct ReplaceableRandomTests {
    private func numbers() -> [UInt64] { (0..<4).map { _ in ReplaceableRandom.number() } }

    @Test func `the values of a seed are the same each time, and differ from those of another seed`() {
        let first = ReplaceableRandom.following(seed: 1) { numbers() }
        #expect(Set(first).count == 4)
        #expect(ReplaceableRandom.following(seed: 1) { numbers() } == first)
        #expect(ReplaceableRandom.following(seed: 2) { numbers() } != first)
    }

    @Test func `without a seed the values are the system's`() {
        #expect(numbers() != numbers())
        _ = ReplaceableRandom.following(seed: 1) { numbers() }
        #expect(numbers() != numbers())
    }

    @Test func `a task that is started within a seed continues its values`() async {
        func inTask() async -> [UInt64] {
            await ReplaceableRandom.following(seed: 7) {
                Task { [ReplaceableRandom.number(), ReplaceableRandom.number()] }
            }
            .value
        }
        let first = await inTask()
        #expect(await inTask() == first)
    }
}
