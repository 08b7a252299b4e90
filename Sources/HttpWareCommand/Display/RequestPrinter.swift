import Dispatch
import HttpGateway
import HttpWare
import Synchronization

/// Prints each exchange of a gateway in this process on a separate thread, so that no loop waits for a terminal.
final class RequestPrinter: Sendable {
    private let records: RequestRecords
    private let subscription: RecordSubscription
    private let waiting: DispatchSemaphore
    private let ended = DispatchSemaphore(value: 0)
    private let isEnding = Atomic(false)
    private let print: @Sendable (ExchangeReport) -> Void
    private let note: @Sendable (String) -> Void

    /// Prints each exchange that ends from now on; `note` prints other messages.
    init(
        _ records: RequestRecords, print: @escaping @Sendable (ExchangeReport) -> Void,
        note: @escaping @Sendable (String) -> Void
    ) {
        self.records = records
        self.print = print
        self.note = note
        let waiting = DispatchSemaphore(value: 0)
        self.waiting = waiting
        subscription = RecordSubscription(limit: 10_000) { waiting.signal() }
        records.subscribe(subscription)
        DetachedThread.start { self.run() }
    }

    /// Prints the remaining lines and ends the thread. Call it once, after the gateway has ended.
    func finish() {
        isEnding.store(true, ordering: .releasing)
        waiting.signal()
        ended.wait()
        records.unsubscribe(subscription)
    }

    private func run() {
        var isLast = false
        while !isLast {
            waiting.wait()
            isLast = isEnding.load(ordering: .acquiring)
            let (exchanges, dropped) = subscription.takeRecords()
            for exchange in exchanges { print(ExchangeReport(exchange)) }
            if dropped > 0 { note("\(dropped) requests are not shown, because they came too fast") }
        }
        ended.signal()
    }
}
