import HttpWare
import Synchronization

/// The exchanges that end from now on, as server-sent events (HTML §9.2), for a client that reads them as they come.
///
/// Unchecked: used only on the loop of its exchange, from the first `next` on.
final class RecordEvents: ContentSource, @unchecked Sendable {
    private let records: RequestRecords
    private let streams: StreamCount
    private var subscription: RecordSubscription?
    private var loop: EventLoop?
    /// The feed that waits for the next piece.
    private var feed: ContentFeed?
    private var timer: LoopTimer?
    /// Whether the next event has to wait: events are gathered, so that a flood of them costs little.
    private var isResting = false

    private static let rest = Duration.milliseconds(50)
    /// The interval of comments, which show both ends that the other is alive.
    private static let silence = Duration.seconds(15)
    /// The maximum number of records that wait between two pieces; further ones are dropped and counted.
    private static let mostWaiting = 250

    /// `nil` if too many streams are open.
    init?(_ records: RequestRecords, _ streams: StreamCount) {
        guard streams.takePlace() else { return nil }
        self.records = records
        self.streams = streams
    }

    deinit { streams.giveBack() }

    func next(_ feed: ContentFeed) {
        self.feed = feed
        guard subscription != nil else { return beginStream() }
        isResting = true
        wait(RecordEvents.rest) { events in
            events.isResting = false
            if !events.flush() { events.wait(RecordEvents.silence) { $0.send(": \n\n") } }
        }
    }

    func cancelled() {
        timer?.cancel()
        timer = nil
        feed = nil
        if let subscription { records.unsubscribe(subscription) }
        subscription = nil
    }

    private func beginStream() {
        guard let loop = EventLoop.current else { return }
        self.loop = loop
        let subscription = RecordSubscription(limit: RecordEvents.mostWaiting) { [weak self] in
            guard let events = self else { return }
            loop.execute { if !events.isResting { _ = events.flush() } }
        }
        self.subscription = subscription
        records.subscribe(subscription)
        send(": exchanges as they end\n\n")
    }

    private func wait(_ duration: Duration, _ body: @escaping (RecordEvents) -> Void) {
        timer?.cancel()
        timer = loop?.schedule(after: duration) { [weak self] in if let self { body(self) } }
    }

    /// Sends the waiting records. Returns false if there are none, or if the client accepts no more now.
    private func flush() -> Bool {
        guard feed != nil, let (records, dropped) = subscription?.takeRecords(), !records.isEmpty || dropped > 0 else {
            return false
        }
        var text = ""
        if dropped > 0 { text += "event: dropped\ndata: \(Json.object([("dropped", .number(dropped))]).text)\n\n" }
        for record in records { text += "data: " + ExchangeReport(record).json + "\n\n" }
        send(text)
        return true
    }

    private func send(_ text: String) {
        timer?.cancel()
        timer = nil
        feed.take()?.supply(Array(text.utf8))
    }
}
