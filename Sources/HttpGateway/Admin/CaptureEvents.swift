import Capturing
import HttpWare

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
