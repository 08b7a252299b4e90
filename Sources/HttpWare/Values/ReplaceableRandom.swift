import Synchronization

/// Random values that need not be secret: identifiers, pauses, choices. They come from the system, unless the code runs within
/// `following(seed:_:)`. Keys, tokens and everything else that must not be guessed use `SystemRandomNumberGenerator` instead.
package struct ReplaceableRandom: RandomNumberGenerator, Sendable {
    /// The state of a seeded generator, usable from any thread.
    private final class Seeded: Sendable {
        let state: Atomic<UInt64>

        init(_ seed: UInt64) { state = Atomic(seed) }
    }

    @TaskLocal private static var seeded: Seeded?

    package init() {}

    /// Runs the body, and the tasks that it starts, with values that all follow from the seed.
    package static func following<Result>(seed: UInt64, _ body: () throws -> Result) rethrows -> Result {
        try $seeded.withValue(Seeded(seed), operation: body)
    }

    package mutating func next() -> UInt64 {
        guard let seeded = ReplaceableRandom.seeded else {
            var system = SystemRandomNumberGenerator()
            return system.next()
        }
        return SplitMix64.spread(seeded.state.wrappingAdd(SplitMix64.step, ordering: .relaxed).newValue)
    }

    /// One value of all 64 bits.
    package static func number() -> UInt64 {
        var random = ReplaceableRandom()
        return random.next()
    }
}
