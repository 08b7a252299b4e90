import Capturing
import HttpWare
import Synchronization

/// The captures that begin, change and end from now on, as server-sent events (HTML §9.2).
///
/// Unchecked: used only on the loop of its exchange, from the first `next` on.
final class CaptureEvents: ContentSource, @unchecked Sendable {
    private let store: CaptureStore
    private let streams: StreamCount
    private let filter: CaptureFilter?
    private let form: Form
    private var watcher: CaptureWatcher?
    private var loop: EventLoop?
    private var feed: ContentFeed?
    private var timer: LoopTimer?
    /// Whether the next event has to wait, because changes are being gathered.
    private var isResting = false

    /// The form of the events.
    enum Form {
        /// A row for each change.
        case rows
        /// The record at the end.
        case records
    }

    private static let rest = Duration.milliseconds(50)
    private static let silence = Duration.seconds(15)

    /// `nil` if too many streams are open.
    init?(_ store: CaptureStore, _ streams: StreamCount, _ filter: CaptureFilter?, form: Form = .rows) {
        guard streams.takePlace() else { return nil }
        self.store = store
        self.streams = streams
        self.filter = filter
        self.form = form
    }

    deinit { streams.giveBack() }

    func next(_ feed: ContentFeed) {
        self.feed = feed
        guard watcher != nil else { return beginStream() }
        isResting = true
        wait(CaptureEvents.rest) { events in
            events.isResting = false
            if !events.flush() { events.wait(CaptureEvents.silence) { $0.send(": \n\n") } }
        }
    }

    func cancelled() {
        timer?.cancel()
        timer = nil
        feed = nil
        if let watcher { store.unwatch(watcher) }
        watcher = nil
    }

    private func beginStream() {
        guard let loop = EventLoop.current else { return }
        self.loop = loop
        let watcher = CaptureWatcher(endsOnly: form == .records) { [weak self] in
            guard let events = self else { return }
            loop.execute { if !events.isResting { _ = events.flush() } }
        }
        self.watcher = watcher
        store.watch(watcher)
        send(": captures as they change\n\n")
    }

    private func wait(_ duration: Duration, _ body: @escaping (CaptureEvents) -> Void) {
        timer?.cancel()
        timer = loop?.schedule(after: duration) { [weak self] in if let self { body(self) } }
    }

    /// Sends the changes. Returns false if there are none, or if the client accepts no more now.
    private func flush() -> Bool {
        guard feed != nil, let (ids, dropped, lost) = watcher?.takeChanges(), !ids.isEmpty || dropped > 0 || lost > 0
        else { return false }
        var text = ""
        if dropped > 0 { text += "event: dropped\ndata: \(Json.object([("dropped", .number(dropped))]).text)\n\n" }
        if lost > 0 { text += "event: lost\ndata: \(Json.object([("lost", .number(lost))]).text)\n\n" }
        let captures = ids.compactMap { store.find($0) }.filter { filter?.matches($0) ?? true }
        if form == .records {
            for capture in captures where !capture.isOpen {
                if let report = capture.report { text += "data: \(report.json)\n\n" }
            }
        } else if !captures.isEmpty {
            text +=
                "event: capture\ndata: "
                + Json.object([("captures", .list(captures.map(CaptureJson.row)))]).text + "\n\n"
        }
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
