/// The events of a `text/event-stream`, which connects again when its connection ends. WHATWG HTML §9.2.3.
///
/// ```swift
/// for try await event in manager.events(of: Prices()) { show(event.data) }
/// ```
///
/// After a connection has ended or failed, it waits for the time that the server stated (`retry`), or else for `pause`. The wait
/// grows with each failure in a row. Then it connects again with `Last-Event-ID`. It ends when the server answers 204. It throws
/// if the server refuses or answers with another media type, or the task is cancelled. Each iterator has its own connection.
public struct ServerEvents<R: Route>: AsyncSequence, Sendable {
    public typealias Element = ServerEvent

    let sender: any HttpSending
    let route: R
    let options: [CallOption]
    /// The id of the last event that the program has received; empty if there was none.
    public var lastEventId = ""
    /// The wait before it connects again, if the server has not stated one.
    public var pause = Duration.seconds(3)
    /// The longest wait.
    public var longestPause = Duration.seconds(60)

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    public struct Iterator: AsyncIteratorProtocol {
        private let events: ServerEvents
        private var present: ContentEvents.Iterator?
        private var lastId: String
        private var pause: Duration
        private var isFirst = true
        /// The number of connections in a row without an event.
        private var failures = 0

        init(_ events: ServerEvents) {
            self.events = events
            lastId = events.lastEventId
            pause = events.pause
        }

        /// The next event; `nil` when the server has no more events.
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
                    // The loop below connects again.
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

        /// Returns false if the server has no more events.
        private mutating func connect() async throws -> Bool {
            var options = events.options
            options.append(.field("Accept", "text/event-stream"))
            options.append(.field("Cache-Control", "no-store"))
            if !lastId.isEmpty { options.append(.field("Last-Event-ID", lastId)) }
            let response = try await events.sender.stream(events.route, with: options)
            if response.status == .noContent { return false }
            let type = response.fields[.contentType]?.prefix { $0 != ";" }.lowercased()
            guard type == "text/event-stream" else {
                throw HttpError(
                    .upstream, .contentType, .checking,
                    "the response is \(type ?? "untyped"), which is not text/event-stream"
                ).about(response.bytes.failure.route, nil, response.response)
            }
            // An event without an id has the id of the event before it, even over another connection.
            present = response.events.makeAsyncIterator(after: lastId)
            return true
        }
    }
}

extension HttpSending {
    /// The events of the route. It opens new connections when needed.
    public func events<R: Route>(of route: R, _ options: CallOption...) -> ServerEvents<R> {
        ServerEvents(sender: self, route: route, options: options)
    }
}

extension HttpError {
    /// Whether a stream of events continues with another connection, because this one failed or broke.
    fileprivate var mayReconnect: Bool {
        switch fault {
        case .exchange(let fault): side == .upstream && fault != .responseContentTooLarge
        case .status(let status): [500, 502, 503, 504].contains(status.code)
        default: false
        }
    }
}
