import Testing

@testable import HttpWare

@Suite struct TimerHeapTests {
    private final class Node: TimerHeapNode {
        var heapIndex: Int32 = -1
        let name: Int
        init(_ name: Int) { self.name = name }
    }

    @Test(arguments: [1, 2, 3, 7, 64, 300])
    func `it answers what a sorted list answers, whatever is inserted, moved and removed`(size: Int) {
        var random = SystemRandomNumberGenerator()
        var heap = TimerHeap<Node>()
        let nodes = (0..<size).map(Node.init)
        var model: [Int: Int64] = [:]
        for _ in 0..<size * 40 {
            let node = nodes.randomElement(using: &random)!  // size is at least 1
            let due = Int64.random(in: 0..<50, using: &random)
            switch (model[node.name], Int.random(in: 0..<3, using: &random)) {
            case (nil, _):
                heap.insert(node, due: due)
                model[node.name] = due
            case (_, 0):
                heap.remove(node)
                model[node.name] = nil
            default:
                heap.move(node, due: due)
                model[node.name] = due
            }
            #expect(heap.count == model.count)
            #expect(heap.earliestDue == model.values.min() ?? .max)
            #expect(heap.first.flatMap { model[$0.name] } == model.values.min())
            #expect((node.heapIndex >= 0) == (model[node.name] != nil))
            if model[node.name] != nil { #expect(heap.due(of: node) == model[node.name]) }
        }
        var last = Int64.min
        while let first = heap.first {
            #expect(heap.earliestDue >= last)
            last = heap.earliestDue
            heap.remove(first)
        }
        #expect(nodes.allSatisfy { $0.heapIndex == -1 })
    }
}
