import HttpWare

/// Searches for a decision: in the wares' words, with and without the ware's name, and in the words for the whole exchange.
struct DecisionSearch {
    private let pattern: FilterPattern
    /// Whether `ware:decision` can match.
    private let looksForNames: Bool
    private var named: [UInt8] = []

    init(_ pattern: FilterPattern) {
        self.pattern = pattern
        looksForNames = pattern.mayMatch(with: 0x3a)
    }

    /// Whether a ware's decision matches.
    mutating func isFound(
        ware: UnsafeRawBufferPointer, decision: UnsafeRawBufferPointer
    ) throws(Pattern.LimitReached) -> Bool {
        // A ware's own decision may be a phrase; its first word counts too.
        let first = UnsafeRawBufferPointer(rebasing: decision[..<(decision.firstIndex(of: 0x20) ?? decision.count)])
        for word in first.count < decision.count ? [decision, first] : [decision] {
            if try pattern.isFound(in: word) { return true }
            guard looksForNames else { continue }
            named.removeAll(keepingCapacity: true)
            named += ware
            named.append(0x3a)
            named += word
            if try pattern.isFound(in: named) { return true }
        }
        guard ware.elementsEqual("mock".utf8), decision.elementsEqual("aborted".utf8) else { return false }
        return try pattern.isFound(in: "mocked")
    }

    /// Whether a word for the whole exchange matches.
    func isFound(
        responder: String, cache: String?, isReplayed: Bool, end: String
    ) throws(Pattern.LimitReached) -> Bool {
        if responder == "mock", try pattern.isFound(in: "mocked") { return true }
        if let cache, try pattern.isFound(in: cache) { return true }
        if isReplayed {
            if try pattern.isFound(in: "retried") { return true }
            if try pattern.isFound(in: "replayed") { return true }
        }
        return try pattern.isFound(in: end)
    }

    /// Whether a decision of the record matches.
    mutating func isFound(in summary: ReportSummary) throws(Pattern.LimitReached) -> Bool {
        for step in summary.wares {
            var (ware, decision) = (step.ware, step.decision)
            let found = ware.withUTF8 { ware in
                decision.withUTF8 { decision -> Result<Bool, Pattern.LimitReached> in
                    do throws(Pattern.LimitReached) {
                        return .success(
                            try isFound(
                                ware: UnsafeRawBufferPointer(ware), decision: UnsafeRawBufferPointer(decision)))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            if try found.get() { return true }
        }
        return try isFound(
            responder: summary.responder, cache: summary.cache, isReplayed: summary.isReplayed, end: summary.end)
    }
}
