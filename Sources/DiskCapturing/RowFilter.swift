import Capturing

/// A filter over the rows of segments, which reads no more of a record than the filter needs.
struct RowFilter {
    let filter: CaptureFilter
    private let needsDetails: Bool
    private let needsSummary: Bool
    let needsParts: Bool

    init(_ filter: CaptureFilter) {
        self.filter = filter
        needsDetails = filter.needsDetails
        needsSummary = filter.needsSummary
        needsParts = filter.needsParts
    }

    /// Whether a row matches, as far as it tells; `nil` if that takes more.
    func answer(_ facts: CaptureFilter.Facts, _ row: UnsafeRawBufferPointer, _ pool: inout TextPool) -> Bool? {
        let first = filter.answer(facts)
        guard first == nil, needsDetails else { return first }
        return filter.answer(detailed(facts, row, &pool))
    }

    /// The same with the rest of the record, whose checksum is right.
    func answer(row: UnsafeRawBufferPointer, rest: UnsafeRawBufferPointer, _ pool: inout TextPool) -> Bool? {
        do throws(DamagedRecord) {
            var facts = try CaptureRecord.facts(row)
            if needsDetails { facts = detailed(facts, row, &pool) }
            facts.parts = try CaptureRecord.parts(rest)
            return filter.answer(facts)
        } catch {
            return nil
        }
    }

    private func detailed(
        _ facts: CaptureFilter.Facts, _ row: UnsafeRawBufferPointer, _ pool: inout TextPool
    ) -> CaptureFilter.Facts {
        var facts = facts
        facts.details = try? CaptureRecord.details(row, &pool, withSummary: needsSummary)
        return facts
    }
}
