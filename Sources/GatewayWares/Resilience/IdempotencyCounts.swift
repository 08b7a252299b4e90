import HttpWare
import Synchronization

/// Counts requests with a key, by their result. Safe from any thread.
final class IdempotencyCounts: WareCounter {
    enum Result: Int, CaseIterable {
        /// The request's response, or a marker for it, was stored.
        case stored
        /// The request was answered with a stored response.
        case replayed
        /// Another request is using the key, or used it and its response is not known.
        case conflict
        /// The key was used for another request.
        case mismatch
        /// The store did not answer.
        case unavailable
    }

    private let stored = Atomic(0)
    private let replayed = Atomic(0)
    private let conflict = Atomic(0)
    private let mismatch = Atomic(0)
    private let unavailable = Atomic(0)

    func add(_ result: Result) {
        switch result {
        case .stored: stored.add(1, ordering: .relaxed)
        case .replayed: replayed.add(1, ordering: .relaxed)
        case .conflict: conflict.add(1, ordering: .relaxed)
        case .mismatch: mismatch.add(1, ordering: .relaxed)
        case .unavailable: unavailable.add(1, ordering: .relaxed)
        }
    }

    func count(_ result: Result) -> Int {
        switch result {
        case .stored: stored.load(ordering: .relaxed)
        case .replayed: replayed.load(ordering: .relaxed)
        case .conflict: conflict.load(ordering: .relaxed)
        case .mismatch: mismatch.load(ordering: .relaxed)
        case .unavailable: unavailable.load(ordering: .relaxed)
        }
    }

    var numbers: [WareNumber] {
        Result.allCases.map {
            WareNumber(
                "httpware_idempotent_requests_total", "Requests with an idempotency key, by what became of them.",
                count($0), label: .init("result", "\($0)"))
        }
    }
}
