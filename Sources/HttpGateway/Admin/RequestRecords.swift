public import HttpWare

/// The records of the last exchanges of a gateway, over all its loops: one ring for each loop, with a common limit.
///
/// Safe from any thread: each ring guards itself.
public final class RequestRecords: Sendable {
    /// The ring of each loop.
    let rings: [RecordRing]

    /// The maximum number of exchanges that a gateway keeps.
    public static let mostRecords = 2000
    public static let mostBytes = ByteCount.mebibytes(64)

    init(loops: Int, numbers: ExchangeNumbers) {
        rings = (0..<loops).map { _ in
            RecordRing(
                mostRecords: max(1, RequestRecords.mostRecords / loops),
                mostBytes: ByteCount(bytes: max(1, RequestRecords.mostBytes.bytes / loops)), numbers: numbers)
        }
    }

    /// The last exchanges that ended, the newest first.
    public func recent(_ limit: Int) -> [RecordedExchange] {
        Array(rings.flatMap { $0.recent(limit) }.sorted { $0.endedAt > $1.endedAt }.prefix(limit))
    }

    /// The exchange with that number or exchange id; `nil` if it is not kept.
    public func find(_ id: String) -> RecordedExchange? {
        for ring in rings { if let found = ring.find(id) { return found } }
        return nil
    }

    /// Delivers every exchange that ends from now on.
    public func subscribe(_ subscription: RecordSubscription) { for ring in rings { ring.subscribe(subscription) } }

    /// Ends a subscription.
    public func unsubscribe(_ subscription: RecordSubscription) {
        for ring in rings { ring.unsubscribe(subscription) }
    }
}
