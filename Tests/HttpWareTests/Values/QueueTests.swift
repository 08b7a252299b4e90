import HttpWare
import Testing

@Suite struct QueueTests {
    @Test func `elements leave in order of arrival, however they come and go`() {
        var queue = Queue<Int>()
        var model: [Int] = []
        var next = 0
        for round in 0..<400 {
            for _ in 0..<(round * 7 % 23) {
                queue.append(next)
                model.append(next)
                next += 1
            }
            for _ in 0..<(round * 5 % 19) {
                #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
            }
            if round.isMultiple(of: 31) {
                queue.removeAll { $0.isMultiple(of: 3) }
                model.removeAll { $0.isMultiple(of: 3) }
            }
            #expect(Array(queue) == model)
            #expect(queue.first == model.first)
            #expect(queue.count == model.count)
        }
        #expect(!queue.isEmpty)
    }

    @Test func `an element that left is released at once`() {
        final class Element {}
        var queue: Queue<Element> = [Element(), Element(), Element()]
        weak let first = queue.first
        #expect(first != nil)
        _ = queue.popFirst()
        #expect(first == nil)
        #expect(queue.count == 2)
    }

    @Test func `an element is removed in the middle`() {
        var queue: Queue = [1, 2, 3, 4]
        #expect(queue.popFirst() == 1)
        #expect(queue.remove(at: 1) == 3)
        #expect(Array(queue) == [2, 4])
    }
}
