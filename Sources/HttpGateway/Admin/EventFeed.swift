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
