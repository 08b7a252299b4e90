import Capturing

/// A filter for the rows of segments. It reads only the parts of a record that the filter needs.
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

    /// Whether a row matches; `nil` if the row does not decide.
    func answer(_ facts: CaptureFilter.Facts, _ row: UnsafeRawBufferPointer, _ pool: inout TextPool) -> Bool? {
        let first = filter.answer(facts)
        guard first == nil, needsDetails else { return first }
        return filter.answer(detailed(facts, row, &pool))
    }

    /// Whether a record matches, given its row and its rest, whose checksum was verified.
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
