import HttpWare
import Synchronization

// One file: the ring of captures, its byte limit and its watchers change together behind one mutex.
/// The captures of a gateway in memory: as many as fit, the oldest go first. Those that are pinned stay as long as others can go.
///
/// Loops put, any thread reads. One `Mutex` guards it, held for one capture at a time.
public final class CaptureStore: Sendable {
    /// A capture changed.
    public struct Change: Sendable {
        public let id: Int
    }

    /// A capture with the memory that it takes.
    private struct Kept {
        let id: Int
        /// `nil` once it is gone.
        var box: CapturedBox?
        let memory: Int

        init(_ capture: consuming CapturedExchange) {
            id = capture.id
            memory = capture.memory
            box = CapturedBox(capture)
        }
    }

    private struct State {
        /// By their numbers, ascending; those before `first` are gone.
        var captures: [Kept] = []
        var first = 0
        var count = 0
        /// Of the captures, and what exchanges that are under way have reserved.
        var bytes = 0
        var reserved = 0
        var lost = 0
        /// The highest number that memory has let go; those up to it may be in the archive.
        var gone = 0
        var watchers: [CaptureWatcher] = []

        /// Where the number is, or would be.
        func place(of id: Int) -> Int {
            // Captures begin in the order of their numbers, and nearly end in it.
            if captures.last.map({ $0.id < id }) ?? true { return captures.count }
            var (low, high) = (first, captures.count)
            while low < high {
                let middle = (low + high) / 2
                if captures[middle].id < id { low = middle + 1 } else { high = middle }
            }
            return low
        }

        func find(_ id: Int) -> CapturedBox? {
            let place = place(of: id)
            return place < captures.count && captures[place].id == id ? captures[place].box : nil
        }

        /// Takes a capture away; its place stays.
        mutating func remove(at place: Int) -> CapturedBox? {
            guard let box = captures[place].box.take() else { return nil }
            bytes -= captures[place].memory
            count -= 1
            return box
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

    /// The listener of exchanges that an archive brought.
    public static let importListener = "har"

    public let settings: CaptureSettings
    private let state = Mutex(State())
    private let number = Atomic(0)
    /// Where captures are kept beyond memory; `nil`: nowhere.
    public let archive: (any CaptureArchive)?

    /// A store that counts on from an archive, and from the store before it.
    public init(
        _ settings: CaptureSettings, archive: (any CaptureArchive)? = nil, after former: CaptureStore? = nil
    ) {
        self.settings = settings
        self.archive = archive
        let last = archive?.lastId ?? 0
        number.store(max(last, former?.number.load(ordering: .relaxed) ?? 0), ordering: .relaxed)
        state.withLock { $0.gone = last }
    }

    /// The number of a capture that begins.
    public func takeNumber() -> Int { number.add(1, ordering: .relaxed).newValue }

    /// About how much memory all of it takes, in bytes.
    public var bytes: Int { state.withLock { $0.bytes + $0.reserved } }
    /// The number of captures.
    public var count: Int { state.withLock { $0.count } }

    // MARK: Putting

    /// Takes memory for content of an exchange that is under way; the oldest captures go for it. False if there is none.
    func reserve(_ count: Int) -> Bool {
        var gone: [CapturedBox] = []
        return state.withLock { state in
            guard CaptureStore.makeRoom(for: count, in: &state, settings.memory.bytes, &gone) else { return false }
            state.reserved += count
            return true
        }
    }

    /// Gives reserved memory back.
    func giveBack(_ count: Int) { state.withLock { $0.reserved -= count } }

    /// Keeps a capture, in place of its former state. What users wrote on it stays.
    func put(_ capture: consuming CapturedExchange) {
        let id = capture.id
        let isOpen = capture.isOpen
        let fresh = Kept(capture)
        // In the archive before it may go from memory.
        var ended: CapturedBox?
        defer { if let ended, let archive { archive.put(ended.exchange) } }
        // What goes is freed behind the lock.
        var gone: [CapturedBox] = []
        state.withLock { state in
            var kept = fresh
            let place = state.place(of: id)
            if place < state.captures.count, state.captures[place].id == id, let former = state.remove(at: place) {
                let user = former.exchange
                if user.isPinned || !user.comment.isEmpty, var capture = fresh.box?.exchange {
                    capture.isPinned = user.isPinned
                    capture.comment = user.comment
                    kept = Kept(capture)
                }
                gone.append(former)
            }
            if !isOpen, archive != nil { ended = kept.box }
            guard CaptureStore.makeRoom(for: kept.memory, in: &state, settings.memory.bytes, sparing: id, &gone) else {
                state.lost += 1
                state.gone = max(state.gone, id)
                return
            }
            state.set(kept, at: state.place(of: id))
            for watcher in state.watchers { watcher.note(id) }
        }
    }

    /// Lets the oldest captures go until so much fits; false if it never does.
    private static func makeRoom(
        for count: Int, in state: inout State, _ most: Int, sparing id: Int = 0, _ gone: inout [CapturedBox]
    ) -> Bool {
        var pinned: [Kept] = []
        defer {
            // Those that were passed by are the oldest now.
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
            guard let box = oldest.box else { continue }
            if box.exchange.isPinned || oldest.id == id {
                pinned.append(oldest)
                continue
            }
            if let box = state.remove(at: state.first - 1) { gone.append(box) }
            state.gone = max(state.gone, oldest.id)
        }
        return true
    }

    // MARK: Reading

    /// The capture with that number; `nil` if it is not kept.
    public func find(_ id: Int) -> CapturedExchange? {
        state.withLock { $0.find(id) }?.exchange ?? archive?.find(id)
    }

    /// The newest captures that match, the newest first: at most `limit`, of those before the one with that number. A search that is not
    /// through at the deadline ends there, and says where to go on.
    public func list(
        before: Int? = nil, limit: Int, filter: CaptureFilter?, until deadline: ContinuousClock.Instant? = nil
    ) -> CapturePage {
        let recent = boxes(before: before, limit: limit, until: deadline) { filter?.matches($0) ?? true }
        let gone = state.withLock { $0.gone }
        guard let archive, gone > 0, recent.next ?? 0 <= gone else {
            return CapturePage(recent.boxes.map(\.exchange), next: recent.next)
        }
        let older = archive.list(
            before: min(before ?? .max, gone + 1), limit: limit, filter: filter, until: deadline
        ) { id in
            state.withLock { $0.find(id) != nil }
        }
        // Pinned captures in memory stand among those of the archive.
        var next = max(recent.next ?? 0, older.next ?? 0)
        var all = (recent.boxes.map(\.exchange) + older.captures).filter { $0.id >= next }.sorted { $0.id > $1.id }
        if all.count > limit {
            all.removeLast(all.count - limit)
            next = all.last?.id ?? next
        }
        return CapturePage(all, next: next > 0 ? next : nil)
    }

    /// The numbers of captures that have ended and match, the newest first.
    public func ids(filter: CaptureFilter?, limit: Int = .max) -> [Int] {
        let recent = boxes(limit: limit) { !$0.exchange.isOpen && filter?.matches($0) ?? true }.boxes.map(\.exchange.id)
        let gone = state.withLock { $0.gone }
        guard let archive, gone > 0 else { return recent }
        let older = archive.ids(before: gone + 1, filter: filter).filter { id in
            state.withLock { $0.find(id) == nil }
        }
        return Array((recent + older).sorted(by: >).prefix(limit))
    }

    /// Keeps exchanges that another program captured, masked as those of the gateway's own. Returns their numbers here.
    public func take(_ exchanges: [CapturedExchange]) -> [Int] {
        let redaction = CaptureRedaction(settings)
        return exchanges.map { exchange in
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

    /// Captures that began before the one with that number, the newest first. At most `limit` of those that `isWanted`.
    func list(
        before: Int? = nil, limit: Int, where isWanted: (CapturedExchange) -> Bool = { _ in true }
    ) -> CapturePage {
        let (boxes, next) = boxes(before: before, limit: limit) { isWanted($0.exchange) }
        return CapturePage(boxes.map(\.exchange), next: next)
    }

    private func boxes(
        before: Int? = nil, limit: Int, until deadline: ContinuousClock.Instant? = nil,
        where isWanted: (CapturedBox) -> Bool
    ) -> (boxes: [CapturedBox], next: Int?) {
        var found: [CapturedBox] = []
        var before = before ?? .max
        while true {
            // A few at a time, so that loops never wait long.
            let some = state.withLock { state -> [CapturedBox] in
                var some: [CapturedBox] = []
                some.reserveCapacity(256)
                var place = before == .max ? state.captures.count : state.place(of: before)
                while place > state.first, some.count < 256 {
                    place -= 1
                    if let box = state.captures[place].box { some.append(box) }
                }
                return some
            }
            guard let last = some.last else { return (found, nil) }
            for (place, box) in some.enumerated() {
                // A search in content may take long, so the time is checked before each capture.
                if let deadline, place > 0, .now >= deadline { return (found, box.exchange.id + 1) }
                guard isWanted(box) else { continue }
                if found.count == limit { return (found, found.last?.exchange.id ?? before) }
                found.append(box)
            }
            before = last.exchange.id
        }
    }

    // MARK: Changing

    /// Pins a capture, or lets it go. False if it is not kept.
    public func pin(_ id: Int, _ isPinned: Bool) -> Bool {
        let isInMemory = change(id) { $0.isPinned = isPinned }
        return (archive?.mark(id, pinned: isPinned, comment: nil) ?? false) || isInMemory
    }

    /// Writes a comment on a capture. False if it is not kept.
    public func comment(_ id: Int, _ comment: String) -> Bool {
        let isInMemory = change(id) { $0.comment = comment }
        return (archive?.mark(id, pinned: nil, comment: comment) ?? false) || isInMemory
    }

    private func change(_ id: Int, _ body: (inout CapturedExchange) -> Void) -> Bool {
        state.withLock { state in
            guard var capture = state.find(id)?.exchange else { return false }
            body(&capture)
            let place = state.place(of: id)
            _ = state.remove(at: place)
            state.set(Kept(capture), at: place)
            for watcher in state.watchers { watcher.note(id) }
            return true
        }
    }

    /// Forgets captures, except those that are pinned. Returns how many.
    public func clear(filter: CaptureFilter? = nil) -> Int {
        let ids = state.withLock { state in state.captures[state.first...].map(\.id) }
        var cleared: Set<Int> = []
        for id in ids {
            guard let box = state.withLock({ $0.find(id) }), !box.exchange.isPinned,
                filter?.matches(box) ?? true
            else { continue }
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

    /// Tells the watcher of each change from now on.
    public func watch(_ watcher: CaptureWatcher) { state.withLock { $0.watchers.append(watcher) } }

    /// Ends that.
    public func unwatch(_ watcher: CaptureWatcher) {
        state.withLock { state in state.watchers.removeAll { $0 === watcher } }
    }
}

/// Gathers the numbers of captures that changed, for one who reads them now and then.
public final class CaptureWatcher: Sendable {
    private let changed = Mutex<(ids: [Int], dropped: Int)>(([], 0))
    private let wake: @Sendable () -> Void
    /// One who reads too slowly is told how many were dropped.
    public static let most = 4096

    /// Calls `wake` when there is something to take and there was not; on a loop's thread, so it must not block.
    public init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    func note(_ id: Int) {
        let isFirst = changed.withLock { changed in
            if changed.ids.last == id { return false }
            guard changed.ids.count < CaptureWatcher.most else {
                changed.dropped += 1
                return false
            }
            changed.ids.append(id)
            return changed.ids.count == 1
        }
        if isFirst { wake() }
    }

    /// The numbers of captures that changed since the last time, each once, and how many changes were dropped.
    public func takeChanges() -> (ids: [Int], dropped: Int) {
        let (ids, dropped) = changed.withLock { changed in
            defer { changed = ([], 0) }
            return changed
        }
        var seen: Set<Int> = []
        return (ids.filter { seen.insert($0).inserted }, dropped)
    }
}

extension CapturedExchange {
    /// About how much memory it takes, in bytes. Both sides of a message share what is the same.
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
