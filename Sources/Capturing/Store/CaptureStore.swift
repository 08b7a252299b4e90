public import HttpWare
import Synchronization

// One file: the ring of captures, its byte limit and its watchers change together behind one mutex.
/// The captures of a gateway in memory. When memory is full, the oldest captures are dropped, but pinned ones are kept.
///
/// Loops put captures, and any thread reads them. A `Mutex` guards the state; it is held for a few captures at a time.
public final class CaptureStore: Sendable {
    /// A capture changed.
    public struct Change: Sendable {
        public let id: Int
    }

    /// A capture and the memory that it takes.
    private struct Kept {
        let id: Int
        /// `nil` after the capture was dropped.
        var capture: KeptCapture?
        var memory: Int

        init(_ capture: KeptCapture) {
            id = capture.id
            memory = capture.memory
            self.capture = capture
        }
    }

    private struct State {
        /// In ascending order of their numbers. Entries before `first` were dropped.
        var captures: [Kept] = []
        var first = 0
        var count = 0
        /// The memory of the captures, and the memory reserved by running exchanges.
        var bytes = 0
        var reserved = 0
        /// The captures that were not kept, although they have ended, and when that was last logged.
        var lost = 0
        var toldLost: ContinuousClock.Instant?
        /// The highest number dropped from memory. Captures up to it may be in the archive.
        var gone = 0
        var watchers: [CaptureWatcher] = []

        /// The index of the number, or the index at which it would be inserted.
        func place(of id: Int) -> Int {
            // Captures begin in the order of their numbers, and usually end in that order.
            if captures.last.map({ $0.id < id }) ?? true { return captures.count }
            var (low, high) = (first, captures.count)
            while low < high {
                let middle = (low + high) / 2
                if captures[middle].id < id { low = middle + 1 } else { high = middle }
            }
            return low
        }

        func find(_ id: Int) -> KeptCapture? {
            let place = place(of: id)
            return place < captures.count && captures[place].id == id ? captures[place].capture : nil
        }

        /// Removes a capture; its entry stays.
        mutating func remove(at place: Int) -> KeptCapture? {
            guard let capture = captures[place].capture.take() else { return nil }
            bytes -= captures[place].memory
            count -= 1
            return capture
        }

        mutating func set(_ kept: Kept, at place: Int) {
            bytes += kept.memory
            count += 1
            if place < captures.count, captures[place].id == kept.id {
                captures[place] = kept
            } else {
                captures.insert(kept, at: place)
            }
        }
    }

    /// The listener name of exchanges imported from an archive.
    public static let importListener = "har"

    public let settings: CaptureSettings
    let rules: CaptureRules
    private let state = Mutex(State())
    /// Numbers captures and records alike.
    private let numbers: ExchangeNumbers
    /// Keeps captures beyond memory; `nil` if they are in memory only.
    public let archive: (any CaptureArchive)?

    /// A store whose captures have the numbers of their records, and later numbers than those of an archive.
    public init(
        _ settings: CaptureSettings, archive: (any CaptureArchive)? = nil, numbers: ExchangeNumbers = ExchangeNumbers()
    ) {
        self.settings = settings
        rules = CaptureRules(settings)
        self.archive = archive
        self.numbers = numbers
        let last = archive?.lastId ?? 0
        numbers.pass(UInt64(max(0, last)))
        state.withLock { $0.gone = last }
    }

    /// The number of a new capture.
    public func takeNumber() -> Int { Int(truncatingIfNeeded: numbers.take()) }

    /// The approximate memory of all captures in bytes.
    public var bytes: Int { state.withLock { $0.bytes + $0.reserved } }
    /// The number of captures.
    public var count: Int { state.withLock { $0.count } }
    /// The number of exchanges that were not kept, because pinned captures filled the memory.
    public var lost: Int { state.withLock { $0.lost } }

    // MARK: Storing

    /// Reserves memory for content of a running exchange, dropping the oldest captures if needed. Returns false if there is not
    /// enough.
    func reserve(_ count: Int) -> Bool {
        var gone: [KeptCapture] = []
        return state.withLock { state in
            guard CaptureStore.makeRoom(for: count, in: &state, settings.memory.bytes, &gone) else { return false }
            state.reserved += count
            return true
        }
    }

    /// Gives reserved memory back.
    func giveBack(_ count: Int) { state.withLock { $0.reserved -= count } }

    /// Stores a capture in place of its earlier state. A user's pin and comment are kept.
    func put(_ capture: consuming CapturedExchange) { put(KeptCapture(capture)) }

    /// The same for a capture that is made when it is read.
    func put(_ capture: KeptCapture) {
        let id = capture.id
        let isOpen = capture.isOpen
        // It goes to the archive before it can be dropped from memory.
        var ended: KeptCapture?
        defer { if let ended, let archive { archive.put(ended) } }
        // Dropped captures are freed outside the lock.
        var gone: [KeptCapture] = []
        state.withLock { state in
            var kept = Kept(capture)
            let place = state.place(of: id)
            if place < state.captures.count, state.captures[place].id == id, let former = state.remove(at: place) {
                // An earlier state is an open exchange, or one that was imported, so that nothing is made here.
                let user = former.box.exchange
                if user.isPinned || !user.comment.isEmpty {
                    kept = Kept(capture.marked(isPinned: user.isPinned, comment: user.comment))
                }
                gone.append(former)
            }
            if !isOpen, archive != nil { ended = kept.capture }
            guard CaptureStore.makeRoom(for: kept.memory, in: &state, settings.memory.bytes, sparing: id, &gone) else {
                state.gone = max(state.gone, id)
                if !isOpen, archive == nil { lose(in: &state) }
                return
            }
            state.set(kept, at: state.place(of: id))
            for watcher in state.watchers { watcher.note(id, isEnd: !isOpen) }
        }
    }

    /// Counts the memory of captures that were made of notes since they were put.
    private func settle(_ captures: some Sequence<KeptCapture>) {
        var gone: [KeptCapture] = []
        for capture in captures {
            guard let memory = capture.takeNewMemory() else { continue }
            state.withLock { state in
                let place = state.place(of: capture.id)
                guard place < state.captures.count, state.captures[place].capture === capture else { return }
                state.bytes += memory - state.captures[place].memory
                state.captures[place].memory = memory
                _ = CaptureStore.makeRoom(for: 0, in: &state, settings.memory.bytes, sparing: capture.id, &gone)
            }
        }
    }

    /// Counts a capture that is not kept, and says so: at once to watchers, and at most once a minute in the log.
    private func lose(in state: inout State) {
        state.lost += 1
        for watcher in state.watchers { watcher.noteLost() }
        let now = ContinuousClock.now
        guard state.toldLost.map({ now - $0 >= .seconds(60) }) ?? true else { return }
        state.toldLost = now
        WareLog.shared.log(
            .warning,
            "captures: pinned captures fill the memory (\(settings.memory)), so that new ones are not kept; unpin some, or raise admin.capture.memory"
        )
    }

    /// Drops the oldest captures until `count` bytes fit. Returns false if that is impossible.
    private static func makeRoom(
        for count: Int, in state: inout State, _ most: Int, sparing id: Int = 0, _ gone: inout [KeptCapture]
    ) -> Bool {
        var pinned: [Kept] = []
        defer {
            // Pinned captures that were skipped are now the oldest.
            if !pinned.isEmpty {
                state.first -= pinned.count
                state.captures.replaceSubrange(state.first..<state.first + pinned.count, with: pinned)
            }
            if state.first > 4096, state.first > state.captures.count / 2 {
                state.captures.removeFirst(state.first)
                state.first = 0
            }
        }
        while state.bytes + state.reserved + count > most {
            guard state.first < state.captures.count else { return false }
            let oldest = state.captures[state.first]
            state.first += 1
            guard let capture = oldest.capture else { continue }
            if capture.isPinned || oldest.id == id {
                pinned.append(oldest)
                continue
            }
            if let capture = state.remove(at: state.first - 1) { gone.append(capture) }
            state.gone = max(state.gone, oldest.id)
        }
        return true
    }

    // MARK: Reading

    /// The capture with that number; `nil` if it is not kept.
    public func find(_ id: Int) -> CapturedExchange? {
        guard let capture = state.withLock({ $0.find(id) }) else { return archive?.find(id) }
        let box = capture.box
        settle(CollectionOfOne(capture))
        return box.exchange
    }

    /// The newest matching captures before a number, newest first, at most `limit`. If the search reaches the deadline, it ends
    /// there and returns where to continue.
    public func list(
        before: Int? = nil, limit: Int, filter: CaptureFilter?, until deadline: ContinuousClock.Instant? = nil
    ) -> CapturePage {
        let recent = boxes(before: before, limit: limit, until: deadline) { capture in
            guard let filter else { return capture.row }
            let box = capture.box
            return filter.matches(box) ? box : nil
        }
        let gone = state.withLock { $0.gone }
        guard let archive, gone > 0, recent.next ?? 0 <= gone else {
            return CapturePage(recent.boxes.map(\.exchange), next: recent.next)
        }
        let older = archive.list(
            before: min(before ?? .max, gone + 1), limit: limit, filter: filter, until: deadline
        ) { id in
            state.withLock { $0.find(id) != nil }
        }
        // Pinned captures in memory are sorted among those of the archive.
        var next = max(recent.next ?? 0, older.next ?? 0)
        var all = (recent.boxes.map(\.exchange) + older.captures).filter { $0.id >= next }.sorted { $0.id > $1.id }
        if all.count > limit {
            all.removeLast(all.count - limit)
            next = all.last?.id ?? next
        }
        return CapturePage(all, next: next > 0 ? next : nil)
    }

    /// The numbers of matching captures that have ended, newest first.
    public func ids(filter: CaptureFilter?, limit: Int = .max) -> [Int] {
        let recent = boxes(limit: limit) { capture in
            guard !capture.isOpen else { return nil }
            guard let filter else { return capture.row }
            let box = capture.box
            return filter.matches(box) ? box : nil
        }.boxes.map(\.exchange.id)
        let gone = state.withLock { $0.gone }
        guard let archive, gone > 0 else { return recent }
        let older = archive.ids(before: gone + 1, filter: filter).filter { id in
            state.withLock { $0.find(id) == nil }
        }
        return Array((recent + older).sorted(by: >).prefix(limit))
    }

    /// The numbers of matching captures that have ended, in the order of their starts.
    public func idsByStart(filter: CaptureFilter?) -> [Int] {
        var found: [(started: WallTime, id: Int)] = []
        var before: Int?
        repeat {
            let page = list(before: before, limit: 1000, filter: filter)
            found += page.captures.filter { !$0.isOpen }.map { ($0.started, $0.id) }
            before = page.next
        } while before != nil
        // Numbers ascend with the times, except where an archive was imported.
        return found.sorted { ($0.started, $0.id) < ($1.started, $1.id) }.map(\.id)
    }

    /// Stores exchanges that another program captured, masked like the gateway's own. Returns their new numbers.
    public func take(_ exchanges: [CapturedExchange]) -> [Int] {
        let redaction = rules.redaction
        // Numbers ascend with the times of the starts. The sort is stable.
        let ordered = exchanges.enumerated().sorted {
            ($0.element.started, $0.offset) < ($1.element.started, $1.offset)
        }
        return ordered.map(\.element).map { exchange in
            var exchange = exchange
            exchange.id = takeNumber()
            let url = exchange.url
            exchange.url = redaction.url(url)
            exchange.secrets = CapturedSecrets(
                url: url == exchange.url ? nil : url, request: redaction.mask(&exchange.request), entry: nil)
            if let content = redaction.maskContent(&exchange.request, limit: settings.content.bytes) {
                exchange.secrets = CapturedSecrets(exchange.secrets, requestContent: content)
            }
            if var response = exchange.response {
                let values = redaction.mask(&response)
                let content = redaction.maskContent(&response, limit: settings.content.bytes)
                exchange.response = response
                if !values.isEmpty || content != nil {
                    exchange.secrets = CapturedSecrets(
                        exchange.secrets, response: values, responseContent: content)
                }
            }
            exchange.messages = exchange.messages.map { redaction.masked($0, keepsOriginal: true) }
            put(exchange)
            return exchange.id
        }
    }

    /// The captures before a number, newest first: at most `limit` that satisfy `isWanted`.
    func list(
        before: Int? = nil, limit: Int, where isWanted: (CapturedExchange) -> Bool = { _ in true }
    ) -> CapturePage {
        let (boxes, next) = boxes(before: before, limit: limit) { capture in
            let box = capture.box
            return isWanted(box.exchange) ? box : nil
        }
        return CapturePage(boxes.map(\.exchange), next: next)
    }

    private func boxes(
        before: Int? = nil, limit: Int, until deadline: ContinuousClock.Instant? = nil,
        where wanted: (KeptCapture) -> CapturedBox?
    ) -> (boxes: [CapturedBox], next: Int?) {
        var found: [CapturedBox] = []
        var before = before ?? .max
        while true {
            // A few at a time, so that loops never wait long.
            let some = state.withLock { state -> [KeptCapture] in
                var some: [KeptCapture] = []
                some.reserveCapacity(256)
                var place = before == .max ? state.captures.count : state.place(of: before)
                while place > state.first, some.count < 256 {
                    place -= 1
                    if let capture = state.captures[place].capture { some.append(capture) }
                }
                return some
            }
            guard let last = some.last else { return (found, nil) }
            defer { settle(some) }
            for (place, capture) in some.enumerated() {
                // A search in content may take long, so the time is checked before each capture.
                if let deadline, place > 0, .now >= deadline { return (found, capture.id + 1) }
                guard let box = wanted(capture) else { continue }
                if found.count == limit { return (found, found.last?.exchange.id ?? before) }
                found.append(box)
            }
            before = last.id
        }
    }

    // MARK: Changing

    /// Pins or unpins a capture. Returns false if it is not kept.
    public func pin(_ id: Int, _ isPinned: Bool) -> Bool {
        let isInMemory = change(id) { $0.isPinned = isPinned }
        return (archive?.mark(id, pinned: isPinned, comment: nil) ?? false) || isInMemory
    }

    /// Sets a capture's comment. Returns false if the capture is not kept.
    public func comment(_ id: Int, _ comment: String) -> Bool {
        let isInMemory = change(id) { $0.comment = comment }
        return (archive?.mark(id, pinned: nil, comment: comment) ?? false) || isInMemory
    }

    private func change(_ id: Int, _ body: (inout CapturedExchange) -> Void) -> Bool {
        while let kept = state.withLock({ $0.find(id) }) {
            var capture = kept.box.exchange
            body(&capture)
            let changed = Kept(KeptCapture(capture))
            let isChanged = state.withLock { state in
                let place = state.place(of: id)
                // Meanwhile the capture may have been replaced by a later state of its exchange, or dropped.
                guard place < state.captures.count, state.captures[place].capture === kept else { return false }
                _ = state.remove(at: place)
                state.set(changed, at: place)
                for watcher in state.watchers { watcher.note(id) }
                return true
            }
            if isChanged { return true }
        }
        return false
    }

    /// Erases captures, except pinned ones. Returns their number.
    public func clear(filter: CaptureFilter? = nil) -> Int {
        let ids = state.withLock { state in state.captures[state.first...].map(\.id) }
        var cleared: Set<Int> = []
        for id in ids {
            guard let capture = state.withLock({ $0.find(id) }), !capture.isPinned,
                filter?.matches(capture.box) ?? true
            else { continue }
            settle(CollectionOfOne(capture))
            state.withLock { state in
                let place = state.place(of: id)
                guard place < state.captures.count, state.captures[place].id == id, state.remove(at: place) != nil
                else { return }
                cleared.insert(id)
            }
        }
        cleared.formUnion(archive?.clear(filter: filter) ?? [])
        return cleared.count
    }

    // MARK: Watching

    /// Notifies the watcher of each change from now on.
    public func watch(_ watcher: CaptureWatcher) { state.withLock { $0.watchers.append(watcher) } }

    /// Ends the notifications.
    public func unwatch(_ watcher: CaptureWatcher) {
        state.withLock { state in state.watchers.removeAll { $0 === watcher } }
    }
}

/// Collects the numbers of changed captures for a reader.
public final class CaptureWatcher: Sendable {
    private let changed = Mutex<(ids: [Int], dropped: Int, lost: Int)>(([], 0, 0))
    private let wake: @Sendable () -> Void
    /// The most numbers that wait for the reader. Further changes are only counted.
    public static let most = 4096

    private let endsOnly: Bool

    /// Calls `wake` when the first change arrives. The call is on a loop's thread, so it must not block. With `endsOnly`, only
    /// the end of an exchange is a change.
    public init(endsOnly: Bool = false, wake: @escaping @Sendable () -> Void) {
        self.endsOnly = endsOnly
        self.wake = wake
    }

    func note(_ id: Int, isEnd: Bool = false) {
        if endsOnly, !isEnd { return }
        let isFirst = changed.withLock { changed in
            if changed.ids.last == id { return false }
            guard changed.ids.count < CaptureWatcher.most else {
                changed.dropped += 1
                return false
            }
            changed.ids.append(id)
            return changed.ids.count == 1 && changed.lost == 0
        }
        if isFirst { wake() }
    }

    /// Counts a capture that could not be kept.
    func noteLost() {
        let isFirst = changed.withLock { changed in
            changed.lost += 1
            return changed.lost == 1 && changed.ids.isEmpty
        }
        if isFirst { wake() }
    }

    /// The numbers of captures that changed since the last call, without duplicates, and the numbers of dropped changes and of
    /// captures that were not kept.
    public func takeChanges() -> (ids: [Int], dropped: Int, lost: Int) {
        let (ids, dropped, lost) = changed.withLock { changed in
            defer { changed = ([], 0, 0) }
            return changed
        }
        var seen: Set<Int> = []
        return (ids.filter { seen.insert($0).inserted }, dropped, lost)
    }
}

extension CapturedExchange {
    /// The approximate memory in bytes. Both sides of a message share identical parts.
    public var memory: Int {
        var bytes = 512 + url.utf8.count + comment.utf8.count
        bytes += request.memory + (response?.memory ?? 0)
        if let sentRequest { bytes += sentRequest.memory(beside: request) }
        if let receivedResponse { bytes += receivedResponse.memory(beside: response) }
        for message in messages { bytes += message.memory }
        if let secrets { bytes += secrets.memory }
        bytes += tls.memory(for: id)
        if let record { bytes += record.memory }
        return bytes
    }
}

extension CapturedPiece {
    var memory: Int { 128 + data.count + (original?.count ?? 0) }
}

extension CapturedMessage {
    fileprivate var memory: Int { fieldMemory + content.kept.count }

    private var fieldMemory: Int { fields.memory + trailers.memory }

    fileprivate func memory(beside other: CapturedMessage?) -> Int {
        (other?.fields == fields ? trailers.memory : fieldMemory)
            + (other?.content.kept == content.kept ? 0 : content.kept.count)
    }
}
