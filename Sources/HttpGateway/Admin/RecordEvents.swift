import HttpWare

/// The exchanges that end from now on.
final class RecordEvents: EventTopic {
    static let greeting = "exchanges as they end"
    /// The maximum number of records that wait between two pieces; further ones are dropped and counted.
    private static let mostWaiting = 250

    private let records: RequestRecords
    private var subscription: RecordSubscription?

    init(_ records: RequestRecords) { self.records = records }

    func watch(_ wake: @escaping @Sendable () -> Void) {
        let subscription = RecordSubscription(limit: RecordEvents.mostWaiting, wake: wake)
        self.subscription = subscription
        records.subscribe(subscription)
    }

    func unwatch() {
        if let subscription { records.unsubscribe(subscription) }
        subscription = nil
    }

    func takeEvents() -> String {
        guard let (records, dropped) = subscription?.takeRecords() else { return "" }
        return records.reduce(into: RecordEvents.event("dropped", dropped)) {
            $0 += "data: " + ExchangeReport($1).json + "\n\n"
        }
    }
}
