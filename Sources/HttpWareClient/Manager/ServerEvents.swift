/// The events of a `text/event-stream` that connects again when its connection ends. WHATWG HTML §9.2.3.
///
/// ```swift
/// for try await event in manager.events(of: Prices()) { show(event.data) }
/// ```
///
/// After a connection has ended, or could not be made, it waits for as long as the server said (`retry`), else for `pause`, longer
/// each time in a row, and asks again with `Last-Event-ID`. It ends when the server answers 204, and throws when the server refuses
/// or answers with another media type, or when the task is cancelled. Each iterator has a connection of its own.
public struct ServerEvents<R: Route>: AsyncSequence, Sendable {
    public typealias Element = ServerEvent

    let manager: HttpManager
    let route: R
    let options: [CallOption]
    /// The id of the last event that a program has seen; empty for none.
    public var lastEventId = ""
    /// How long it waits before it connects again, where the server has not said.
    public var pause = Duration.seconds(3)
    /// How long it waits at most.
    public var longestPause = Duration.seconds(60)

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    public struct Iterator: AsyncIteratorProtocol {
        private let events: ServerEvents
        private var present: ContentEvents.Iterator?
        private var lastId: String
        private var pause: Duration
        private var isFirst = true
        /// Connections in a row that brought no event.
        private var failures = 0

        init(_ events: ServerEvents) {
            self.events = events
            lastId = events.lastEventId
            pause = events.pause
        }

        /// The next event; `nil` when the server says that there are no more.
        public mutating func next() async throws -> ServerEvent? {
            while true {
                do {
                    if present == nil {
                        if !isFirst { try await Task.sleep(for: wait) }
                        isFirst = false
                        guard try await connect() else { return nil }
                    }
                    if let event = try await present?.next() {
                        failures = 0
                        return event
                    }
                } catch let error as HttpError where error.mayReconnect {
                    // It is asked again below.
                }
                if let said = present?.retry { pause = said }
                if let present { lastId = present.lastEventId }
                present = nil
                failures += 1
            }
        }

        private var wait: Duration {
            Swift.min(Swift.max(events.longestPause, pause), pause * (1 << Swift.min(Swift.max(failures - 1, 0), 10)))
        }

        /// Answers false if the server has no more.
        private mutating func connect() async throws -> Bool {
            var request = try events.manager.request(events.route, events.options)
            request.headers["Accept"] = "text/event-stream"
            request.headers["Cache-Control"] = "no-store"
            if !lastId.isEmpty { request.headers["Last-Event-ID"] = lastId }
            let response = try await events.manager.stream(request)
            if response.status == .noContent { return false }
            let type = response.fields[.contentType]?.prefix { $0 != ";" }.lowercased()
            guard type == "text/event-stream" else {
                throw HttpError(
                    .upstream, .contentType, .checking,
                    "the response is \(type ?? "untyped"), which is not text/event-stream"
                ).about(request.name, nil, response.response)
            }
            // An event without an id has the id of the event before it, even over another connection.
            present = response.events.makeAsyncIterator(after: lastId)
            return true
        }
    }
}

extension HttpManager {
    /// The events of the route, over as many connections as it takes.
    public func events<R: Route>(of route: R, _ options: CallOption...) -> ServerEvents<R> {
        ServerEvents(manager: self, route: route, options: options)
    }
}

extension HttpError {
    /// Whether a stream of events goes on with another connection: this one did not come about, or broke.
    fileprivate var mayReconnect: Bool {
        switch fault {
        case .exchange(let fault): side == .upstream && fault != .responseContentTooLarge
        case .status(let status): [500, 502, 503, 504].contains(status.code)
        default: false
        }
    }
}
