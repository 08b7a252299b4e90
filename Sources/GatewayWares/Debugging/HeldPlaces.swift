import Synchronization

/// Counts the messages of a ware that are held, or wait. Safe to use from any thread.
final class HeldPlaces: Sendable {
    private let count = Atomic(0)

    /// Takes a place. Returns false if that many are taken.
    func take(atMost most: Int) -> Bool {
        if count.add(1, ordering: .relaxed).newValue <= most { return true }
        count.subtract(1, ordering: .relaxed)
        return false
    }

    func giveBack() { count.subtract(1, ordering: .relaxed) }
}
