import Capturing
import HttpWare

/// Something whose news a client may follow. Used on the loop of the client's exchange only; `wake` is called on any thread.
protocol EventTopic: AnyObject {
    /// The comment that begins the stream.
    static var greeting: String { get }
    /// Begins to watch. `wake` is called on any thread when there is news.
    func watch(_ wake: @escaping @Sendable () -> Void)
    func unwatch()
    /// The news since the last call as events, in the form of HTML §9.2; empty without any.
    func takeEvents() -> String
}

/// The news of a topic as server-sent events (HTML §9.2), for a client that reads them as they come.
///
/// Unchecked: used only on the loop of its exchange, from the first `next` on.
final class EventFeed: ContentSource, @unchecked Sendable {
    private let topic: any EventTopic
    private let streams: StreamCount
    private var loop: EventLoop?
    /// The feed that waits for the next piece.
    private var feed: ContentFeed?
    private var timer: LoopTimer?
    /// Whether the next event has to wait: events are gathered, so that a flood of them costs little.
    private var isResting = false

    private static let rest = Duration.milliseconds(50)
    /// The interval of comments, which show both ends that the other is alive.
    private static let silence = Duration.seconds(15)

    /// `nil` if too many streams are open.
    init?(_ topic: any EventTopic, _ streams: StreamCount) {
        guard streams.takePlace() else { return nil }
        self.topic = topic
        self.streams = streams
    }

    deinit { streams.giveBack() }

    /// The response that streams the news of the topic, or the refusal if too many streams are open.
    static func response(_ topic: any EventTopic, _ streams: StreamCount) -> HttpResponse {
        guard let events = EventFeed(topic, streams) else {
            return .problem(.serviceUnavailable, "\(StreamCount.most) event streams are already open")
        }
        return HttpResponse(.ok, fields: ["Content-Type": "text/event-stream"], source: events)
    }

    func next(_ feed: ContentFeed) {
        self.feed = feed
        guard loop != nil else { return beginStream() }
        isResting = true
        wait(EventFeed.rest) { events in
            events.isResting = false
            if !events.flush() { events.wait(EventFeed.silence) { $0.send(": \n\n") } }
        }
    }

    func cancelled() {
        timer?.cancel()
        timer = nil
        feed = nil
        topic.unwatch()
    }

    private func beginStream() {
        guard let loop = EventLoop.current else { return }
        self.loop = loop
        topic.watch { [weak self] in
            guard let events = self else { return }
            loop.execute { if !events.isResting { _ = events.flush() } }
        }
        send(": \(type(of: topic).greeting)\n\n")
    }

    private func wait(_ duration: Duration, _ body: @escaping (EventFeed) -> Void) {
        timer?.cancel()
        timer = loop?.schedule(after: duration) { [weak self] in if let self { body(self) } }
    }

    /// Sends the waiting events. Returns false without events, or while the client accepts no more.
    private func flush() -> Bool {
        guard feed != nil else { return false }
        let text = topic.takeEvents()
        guard !text.isEmpty else { return false }
        send(text)
        return true
    }

    private func send(_ text: String) {
        timer?.cancel()
        timer = nil
        feed.take()?.supply(Array(text.utf8))
    }
}

extension EventTopic {
    /// An event with a number: of what was left out.
    static func event(_ name: String, _ count: Int) -> String {
        count > 0 ? "event: \(name)\ndata: \(Json.object([(name, .number(count))]).text)\n\n" : ""
    }
}

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

/// The captures that begin, change and end from now on.
final class CaptureEvents: EventTopic {
    static let greeting = "captures as they change"

    /// The form of the events.
    enum Form {
        /// A row for each change.
        case rows
        /// The record at the end.
        case records
    }

    private let store: CaptureStore
    private let filter: CaptureFilter?
    private let form: Form
    private var watcher: CaptureWatcher?

    init(_ store: CaptureStore, _ filter: CaptureFilter?, form: Form = .rows) {
        self.store = store
        self.filter = filter
        self.form = form
    }

    func watch(_ wake: @escaping @Sendable () -> Void) {
        let watcher = CaptureWatcher(endsOnly: form == .records, wake: wake)
        self.watcher = watcher
        store.watch(watcher)
    }

    func unwatch() {
        if let watcher { store.unwatch(watcher) }
        watcher = nil
    }

    func takeEvents() -> String {
        guard let (ids, dropped, lost) = watcher?.takeChanges() else { return "" }
        var text = CaptureEvents.event("dropped", dropped) + CaptureEvents.event("lost", lost)
        let captures = ids.compactMap { store.find($0) }.filter { filter?.matches($0) ?? true }
        if form == .records {
            for report in captures.lazy.filter({ !$0.isOpen }).compactMap(\.report) {
                text += "data: \(report.json)\n\n"
            }
        } else if !captures.isEmpty {
            let rows = Json.object([("captures", .list(captures.map(CaptureJson.row)))])
            text += "event: capture\ndata: \(rows.text)\n\n"
        }
        return text
    }
}
