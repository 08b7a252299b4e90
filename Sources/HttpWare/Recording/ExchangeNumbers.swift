import Synchronization

/// Numbers exchanges, so that an exchange has the same number as a capture and as a record. Safe to use from any thread.
public final class ExchangeNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    public init() {}

    /// Takes new numbers, of which each is larger than all earlier ones. Returns the first one.
    public func take(_ count: UInt64 = 1) -> UInt64 { last.add(count, ordering: .relaxed).newValue &- count &+ 1 }

    /// Leaves out all numbers up to this one, because earlier captures have them.
    public func pass(_ number: UInt64) { last.max(number, ordering: .relaxed) }
}
