import HttpWare
import Testing

@Suite struct OffloadQueueTests {
    @Test func `a value is returned, also if too much work is pending`() async {
        for most in [0, 1, 8] {
            let queue = OffloadQueue(name: "test", threads: 1, most: most)
            let values = await withTaskGroup(of: Int.self) { group in
                for number in 0..<20 { group.addTask { await queue.value { number * 2 } } }
                return await group.reduce(into: Set<Int>()) { $0.insert($1) }
            }
            #expect(values == Set((0..<20).map { $0 * 2 }))
        }
    }

    @Test func `work beyond the limit is refused`() {
        let queue = OffloadQueue(name: "test", threads: 1, most: 0)
        #expect(!queue.submit({ 1 }) { _ in })
        #expect(queue.taken == 0)
    }
}
