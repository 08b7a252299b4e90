import HttpWare

/// Limits the number of concurrent requests. The others wait, ordered by priority and then by arrival.
///
/// ```swift
/// let queue = RequestQueue(manager, maxConcurrent: 4)
/// let image = try await queue.send(GetImage(id: 7), priority: .low, tags: ["images"])
/// queue.cancelAll(tagged: "images")     // on a weak connection, say
/// ```
///
/// Usable from any task and thread: a mutex guards its state.
public final class RequestQueue: Sendable {
    /// The progress of all work since the queue was last idle.
    public struct Progress: Sendable, Equatable {
        /// The number of requests that have ended, successfully or not.
        public let done: Int
        /// The number of all requests.
        public let total: Int

        public init(done: Int, total: Int) {
            self.done = done
            self.total = total
        }
    }

    private struct Entry {
        let number: Int
        var priority: RequestPriority
        let tags: Set<RequestTag>
        /// Resumes with true when its turn has come, and with false if it was cancelled.
        let turn: LoopWait<Bool>
    }

    private struct Running {
        let tags: Set<RequestTag>
        var isCancelled = false
        /// Set when the request has begun.
        var cancel: (@Sendable () -> Void)?
    }

    private struct State {
        /// The waiting requests, by their numbers.
        var waiting: [Int: Entry] = [:]
        /// The numbers in order of arrival, by priority. Numbers of requests that left may remain.
        var lanes: [RequestPriority: Queue<Int>] = [:]
        var goneCount = 0
        var running: [Int: Running] = [:]
        var maxConcurrent: Int
        var isPaused = false
        var numbers = 0
        var done = 0
        var total = 0
        var idle: [LoopWait<Void>] = []

        mutating func append(_ entry: Entry) {
            waiting[entry.number] = entry
            lanes[entry.priority, default: []].append(entry.number)
        }

        /// Removes the first request of the highest priority.
        mutating func popFirst() -> Entry? {
            for priority in RequestPriority.allCases.reversed() {
                while let number = lanes[priority]?.popFirst() {
                    if let entry = waiting.removeValue(forKey: number) { return entry }
                    goneCount -= 1
                }
            }
            return nil
        }

        /// Removes a request that no longer waits.
        mutating func remove(_ number: Int) {
            guard waiting.removeValue(forKey: number) != nil else { return }
            goneCount += 1
            // Keeps the lanes in proportion to the waiting requests, even if many requests come and go while none begins.
            guard goneCount > waiting.count + 64 else { return }
            for (priority, lane) in lanes { lanes[priority] = lane.filter { waiting[$0] != nil } }
            goneCount = 0
        }
    }

    /// Sends the requests.
    public let manager: HttpManager
    private let state: ThreadLock<State>

    /// A queue with at most `maxConcurrent` concurrent requests, and at least one.
    public init(_ manager: HttpManager, maxConcurrent: Int = 4) {
        self.manager = manager
        state = ThreadLock(State(maxConcurrent: max(1, maxConcurrent)))
    }

    // MARK: Sending

    /// Sends the route when its turn comes. Throws the manager's errors, and `CancellationError` if the request or the
    /// task was cancelled. The route's own tags count too.
    public func send<R: Route>(
        _ route: R, _ options: CallOption..., priority: RequestPriority? = nil, tags: Set<RequestTag> = [],
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> R.Response {
        try await take(try manager.request(route, options), priority, tags, progress).model
    }

    /// Sends a route whose response has no value, when its turn comes.
    @discardableResult
    public func send<R: Route>(
        _ route: R, _ options: CallOption..., priority: RequestPriority? = nil, tags: Set<RequestTag> = [],
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> NoContent where R.Response == NoContent {
        try await take(try manager.request(route, options), priority, tags, progress).model
    }

    /// Sends the route with its own priority when its turn comes.
    public func send<R: Route>(_ route: R) async throws -> R.Response {
        try await take(try manager.request(route), nil, []).model
    }

    /// Sends the request when its turn comes.
    public func send<Response>(
        _ request: Request<Response>, _ options: CallOption..., priority: RequestPriority? = nil,
        tags: Set<RequestTag> = [], progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> Response {
        try await take(request.with(options), priority, tags, progress).model
    }

    /// Sends a request whose response has no value when its turn comes.
    @discardableResult
    public func send(
        _ request: Request<NoContent>, _ options: CallOption..., priority: RequestPriority? = nil,
        tags: Set<RequestTag> = [], progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> NoContent {
        try await take(request.with(options), priority, tags, progress).model
    }

    /// Sends the route when its turn comes, and returns the response with its decoded value.
    public func response<R: Route>(
        of route: R, _ options: CallOption..., priority: RequestPriority? = nil, tags: Set<RequestTag> = [],
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> ModelResponse<R.Response> {
        try await take(try manager.request(route, options), priority, tags, progress)
    }

    func take<Response>(
        _ request: Request<Response>, _ priority: RequestPriority? = nil, _ tags: Set<RequestTag> = [],
        _ progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> ModelResponse<Response> {
        try await run(priority: priority ?? request.priority, tags: tags.union(request.tags)) { [manager] in
            try await manager.response(of: request, progress: progress)
        }
    }

    /// Runs other work when its turn comes, such as a download, a stream, or several requests that belong together.
    public func run<Value: Sendable>(
        priority: RequestPriority = .normal, tags: Set<RequestTag> = [],
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let number = try await takePlace(priority, tags)
        defer { leave(number) }
        // Not detached: the values of task-locals, such as the id of a trace, go along.
        let task = Task { @concurrent in try await work() }
        let cancel: @Sendable () -> Void = { task.cancel() }
        let isCancelled = state.withLock { state in
            state.running[number]?.cancel = cancel
            return state.running[number]?.isCancelled ?? true
        }
        if isCancelled { task.cancel() }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    private func takePlace(_ priority: RequestPriority, _ tags: Set<RequestTag>) async throws -> Int {
        try Task.checkCancellation()
        let turn = LoopWait<Bool>()
        let number = state.withLock { state in
            state.numbers += 1
            state.total += 1
            state.append(Entry(number: state.numbers, priority: priority, tags: tags, turn: turn))
            return state.numbers
        }
        startNext()
        do {
            guard try await turn.value() else { throw CancellationError() }
            return number
        } catch {
            leave(number)
            throw error
        }
    }

    /// Starts waiting work while the limit allows it.
    private func startNext() {
        let turns = state.withLock { state -> [LoopWait<Bool>] in
            var turns: [LoopWait<Bool>] = []
            while !state.isPaused, state.running.count < state.maxConcurrent, let entry = state.popFirst() {
                state.running[entry.number] = Running(tags: entry.tags)
                turns.append(entry.turn)
            }
            return turns
        }
        for turn in turns { turn.resume(returning: true) }
    }

    private func leave(_ number: Int) {
        let idle = state.withLock { state -> [LoopWait<Void>] in
            state.running[number] = nil
            state.remove(number)
            state.done += 1
            guard state.running.isEmpty, state.waiting.isEmpty else { return [] }
            state.done = 0
            state.total = 0
            defer { state.idle = [] }
            return state.idle
        }
        for wait in idle { wait.resume(returning: ()) }
        startNext()
    }

    // MARK: Steering

    /// The maximum number of concurrent requests. A larger number takes effect immediately, a smaller one when enough
    /// requests have ended.
    public var maxConcurrent: Int {
        get { state.withLock { $0.maxConcurrent } }
        set {
            state.withLock { $0.maxConcurrent = max(1, newValue) }
            startNext()
        }
    }

    /// The number of running requests.
    public var runningCount: Int { state.withLock { $0.running.count } }
    public var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// The progress of all work.
    public var progress: Progress { state.withLock { Progress(done: $0.done, total: $0.total) } }

    /// Starts no more requests; running requests continue.
    public func pause() { state.withLock { $0.isPaused = true } }

    /// Starts requests again.
    public func resume() {
        state.withLock { $0.isPaused = false }
        startNext()
    }

    /// Sets the priority of waiting requests with this tag, for example of images that have come into view. They are
    /// placed after the requests that already have that priority.
    public func setPriority(_ priority: RequestPriority, tagged tag: RequestTag) {
        state.withLock { state in
            let meant = state.waiting.values.filter { $0.tags.contains(tag) && $0.priority != priority }
            for entry in meant.sorted(by: { $0.number < $1.number }) {
                state.waiting[entry.number]?.priority = priority
                state.lanes[entry.priority]?.removeAll { $0 == entry.number }
                state.lanes[priority, default: []].append(entry.number)
            }
        }
    }

    /// Cancels all requests, waiting and running ones.
    public func cancelAll() { cancel { _ in true } }

    /// Cancels the requests that have the tag.
    public func cancelAll(tagged tag: RequestTag) { cancel { $0.contains(tag) } }

    private func cancel(_ isCancelled: (Set<RequestTag>) -> Bool) {
        let (turns, cancels) = state.withLock { state -> ([LoopWait<Bool>], [@Sendable () -> Void]) in
            let meant = state.waiting.values.filter { isCancelled($0.tags) }
            for entry in meant { state.remove(entry.number) }
            let turns = meant.map(\.turn)
            var cancels: [@Sendable () -> Void] = []
            for (number, running) in state.running where isCancelled(running.tags) {
                state.running[number]?.isCancelled = true
                if let cancel = running.cancel { cancels.append(cancel) }
            }
            return (turns, cancels)
        }
        for turn in turns { turn.resume(returning: false) }
        for cancel in cancels { cancel() }
    }

    /// Returns when no request waits or runs, which may be immediately. Throws `CancellationError` if the task is
    /// cancelled.
    public func waitUntilIdle() async throws {
        let wait = state.withLock { state -> LoopWait<Void>? in
            if state.running.isEmpty, state.waiting.isEmpty { return nil }
            let wait = LoopWait<Void>()
            state.idle.append(wait)
            return wait
        }
        try await wait?.value()
    }
}
