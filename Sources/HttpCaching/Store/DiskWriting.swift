import Synchronization

/// Whether what belongs to one response was written so far. Shared by the loop that brings it and the thread that writes it.
final class DiskWriting: Sendable {
    private let failed = Atomic(false)

    var hasFailed: Bool { failed.load(ordering: .acquiring) }

    func fail() { failed.store(true, ordering: .releasing) }
}
