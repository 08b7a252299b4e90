import HttpWare
import Synchronization

/// Receives the response to a copy. Used on the loop of its exchange.
final class MirrorCopy: BackgroundReceiver {
    private let counts: MirrorCounts
    private let comparison: MirrorComparison?
    private let limit: Int
    private var received = 0
    private var isFailed = false
    private var isOver = false
    /// The call, so that it can be cancelled.
    var call: (any HttpCall)?

    init(_ counts: MirrorCounts, _ comparison: MirrorComparison?, upTo limit: Int) {
        self.counts = counts
        self.comparison = comparison
        self.limit = limit
    }

    // For a copy that never began, or that the gateway dropped when it stopped.
    deinit { if !isOver { counts.giveBack() } }

    func responseStarted(_ response: HttpResponse, in exchange: Exchange) {
        isFailed = exchange.failure != nil
        if isFailed { comparison?.giveUp() } else { comparison?.copyBegan(response) }
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        received += bytes.count
        guard received > limit else {
            comparison?.copyContent(bytes)
            return
        }
        // The rest is not needed.
        comparison?.giveUp()
        end(isFailed ? .failed : .answered)
        call?.cancel()
        call = nil
    }

    func responseEnded(isWhole: Bool) {
        call = nil
        if isWhole, !isFailed { comparison?.copyEnded() } else { comparison?.giveUp() }
        end(isWhole && !isFailed ? .answered : .failed)
    }

    private func end(_ result: MirrorCounts.Result) {
        guard !isOver else { return }
        isOver = true
        counts.giveBack()
        counts.add(result)
    }
}

/// Copies the content of an exchange's own response for the comparison.
final class MirrorTap: ContentFilter {
    private let comparison: MirrorComparison

    init(_ comparison: MirrorComparison) { self.comparison = comparison }

    var keepsLength: Bool { true }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        comparison.content(input)
        output.append(contentsOf: input)
    }
}

/// Counts copies, and limits the number of concurrent ones. Safe from any thread.
final class MirrorCounts: WareCounter {
    enum Result: Int, CaseIterable {
        /// The service answered.
        case answered
        /// The service did not answer, or its response was cut off.
        case failed
        /// Too many copies were in progress.
        case dropped
        /// The request cannot be copied.
        case skipped
    }

    private let most: Int
    private let inFlight = Atomic(0)
    private let answered = Atomic(0)
    private let failed = Atomic(0)
    private let dropped = Atomic(0)
    private let skipped = Atomic(0)
    private let differences = Atomic(0)

    init(most: Int) { self.most = most }

    /// Takes a place for one more copy; false if there are too many.
    func take() -> Bool {
        if inFlight.add(1, ordering: .relaxed).newValue <= most { return true }
        inFlight.subtract(1, ordering: .relaxed)
        add(.dropped)
        return false
    }

    func giveBack() { inFlight.subtract(1, ordering: .relaxed) }

    func add(_ result: Result) {
        switch result {
        case .answered: answered.add(1, ordering: .relaxed)
        case .failed: failed.add(1, ordering: .relaxed)
        case .dropped: dropped.add(1, ordering: .relaxed)
        case .skipped: skipped.add(1, ordering: .relaxed)
        }
    }

    func addDifference() { differences.add(1, ordering: .relaxed) }

    private func count(_ result: Result) -> Int {
        switch result {
        case .answered: answered.load(ordering: .relaxed)
        case .failed: failed.load(ordering: .relaxed)
        case .dropped: dropped.load(ordering: .relaxed)
        case .skipped: skipped.load(ordering: .relaxed)
        }
    }

    var numbers: [WareNumber] {
        Result.allCases.map {
            WareNumber(
                "httpware_mirror_requests_total", "Copies of requests, by what became of them.", count($0),
                label: .init("result", "\($0)"))
        } + [
            WareNumber(
                "httpware_mirror_differences_total", "Exchanges whose copy was answered differently.",
                differences.load(ordering: .relaxed)),
            WareNumber(
                "httpware_mirror_in_flight", isGauge: true, "Copies that are under way.",
                inFlight.load(ordering: .relaxed)),
        ]
    }
}
