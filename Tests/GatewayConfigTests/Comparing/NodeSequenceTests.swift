import HttpWare
import Testing

@testable import GatewayConfig

@Suite struct NodeSequenceTests {
    private func routes(_ names: [String]) -> NodeSequence {
        NodeSequence.routes(names.map { ["name": ConfigNode(stringLiteral: $0)] })
    }

    @Test func `the fewest that explain an order have moved`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            let old = Array(0..<Int.random(in: 0...7, using: &random)).map(String.init)
            let new = (old.filter { _ in Bool.random(using: &random) } + ["new"]).shuffled(using: &random)
            let pairs = routes(old).pairs(with: routes(new))
            #expect(pairs.map { $0.map { old[$0] } } == new.map { $0 == "new" ? nil : $0 })
            let moved = NodeSequence.moved(pairs)
            let stayed = pairs.indices.filter { !moved.contains($0) }.compactMap { pairs[$0] }
            #expect(stayed == stayed.sorted())
            #expect(stayed.count == longestRun(pairs.compactMap(\.self)))
        }
    }

    /// By trying every choice.
    private func longestRun(_ places: [Int]) -> Int {
        (0..<(1 << places.count)).map { choice in
            let chosen = places.indices.filter { choice & (1 << $0) != 0 }.map { places[$0] }
            return chosen == chosen.sorted() ? chosen.count : 0
        }.max() ?? 0
    }
}
