// One file: the layout of stored responses in Redis, and each command that reads or changes it.

public import HttpCaching
public import HttpWare
import Synchronization

/// Stored responses in Redis, shared by all gateways with the same server and prefix, with a small store in memory for responses
/// that are requested often. The store in memory is valid while changes are reported: each gateway that stores, updates or
/// removes a response publishes that on a channel. While the channel is not available, the store in memory is empty and unused.
/// Redis may be slow, unreachable, full or hold invalid data: each of these is a miss, after its `timeout` at most. In Redis a
/// key is a hash of its responses (field: the values by which they vary; value: `RedisRecord`), and a content is a hash of
/// pieces. Each has an expiry, so that unused data disappears.
public final class RedisStore: CacheStore {
    /// The client that the store uses.
    public let client: RedisClient
    private let near: NearCache
    private let sender = RedisChange.makeSender()
    private let hasBegun = Atomic(false)
    private let owed = ThreadLock(Owed())

    /// The responses that could not be removed from Redis yet. They are not used until they are removed.
    private struct Owed {
        /// Keys that are a URI alone; all keys of that URI are meant.
        var keys: Set<CacheKey> = []
        /// Whether there were too many keys to remember, so that everything must go.
        var isEverything = false
        /// Whether everything is being removed.
        var isPurging = false

        func contains(_ key: CacheKey) -> Bool { isEverything || !keys.isEmpty && keys.contains(key.plain) }
    }

    /// The default size of the store in memory.
    public static let usualNear = ByteCount.mebibytes(16)
    /// The time limit of calls that no request waits for.
    static let patience = Duration.seconds(1)
    /// How long content stays that no longer belongs to a response, for its current readers.
    private static let grace = Duration.seconds(60)
    /// The maximum number of responses under one key.
    private static let mostVariants = 32
    /// The number of responses under a key whose first piece is loaded with the record.
    private static let piecesAtOnce = 4
    private static let mostOwed = 10_000

    /// A store on the server of this client, with up to `near` bytes also in memory. Connects only when it is used.
    public init(_ client: RedisClient, near: ByteCount = usualNear) {
        self.client = client
        self.near = NearCache(limit: near)
    }

    // MARK: Keys

    private var prefix: String { client.definition.prefix }
    private var channel: RedisArgument { RedisArgument(prefix + "changes") }
    private var indexes: String { prefix + "k:" }

    private func digest(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { Digest256(of: $0) }.hex }

    /// The key of the index. On a cluster, all keys of a URI are in one slot, because they share its era.
    private func index(_ key: CacheKey) -> RedisArgument {
        guard key.hasParts else { return RedisArgument(client.definition.tagged("k:", digest(key.uri))) }
        let own = digest(key.encoded)
        return RedisArgument(
            client.definition.servers.isCluster ? "\(indexes){\(digest(key.uri))}\(own)" : indexes + own)
    }

    /// The beginning of the keys of contents. On a cluster, contents are in the slot of their index.
    private func contents(_ key: CacheKey) -> RedisArgument {
        RedisArgument(client.definition.servers.isCluster ? "\(prefix)c:{\(digest(key.uri))}" : prefix + "c:")
    }

    /// The key of the URI's era: a random name, which an invalidation removes. It lasts longer than any response.
    private func era(_ key: CacheKey) -> RedisArgument {
        RedisArgument(client.definition.tagged("e:", digest(key.uri)))
    }

    private static let longestEra = Duration.seconds(366 * 86_400)

    func content(_ mark: [UInt8], of key: CacheKey) -> RedisArgument { RedisArgument(contents(key).bytes + mark) }

    private func message(_ change: RedisChange) -> RedisArgument { RedisArgument(change.message(from: sender)) }

    private var now: WallTime { (EventLoop.current?.clock ?? SystemLoopClock()).wallNow() }

    // MARK: Changes elsewhere

    /// Starts to listen to changes by other gateways, at the first use.
    private func beginListening() {
        guard !hasBegun.load(ordering: .relaxed), !hasBegun.exchange(true, ordering: .relaxed) else { return }
        client.subscribe(to: prefix + "changes") { [weak self] in self?.heard($0) }
    }

    private func heard(_ event: RedisEvent) {
        switch event {
        case .began:
            near.clear(isTold: true)
            payWhatIsOwed()
        case .answered: payWhatIsOwed()
        case .ended: near.clear(isTold: false)
        case .message(let message):
            switch RedisChange(message, except: sender) {
            case .key(let key): near.forget(key)
            case .uri(let key): near.invalidate(key)
            case .several: near.clear()
            case nil: return
            }
        }
    }

    /// Whether changes are reported, so that responses may be held in memory.
    public var isTold: Bool { near.store != nil }

    // MARK: Looking up

    public func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found {
        beginListening()
        if let store = near.store, case .response(let response) = store.find(key, where: isSelected) {
            return .response(response)
        }
        return client.mayAnswer ? .mustWait : .none(hasOthers: false)
    }

    public func load(_ key: CacheKey) async -> [StoredResponse] {
        if owed.withLock({ $0.contains(key) }) {
            invalidate(key)
            return []
        }
        let ticket = near.ticket(for: key)
        let keys = key.hasParts ? [2, index(key), era(key)] : [1, index(key)]
        guard
            let reply = try? await client.command(
                ["EVAL", RedisScripts.load] + keys + [contents(key), RedisArgument(RedisStore.piecesAtOnce)]),
            let values = reply.array, values.count % 2 == 0
        else { return [] }
        var found: [StoredResponse] = []
        for place in stride(from: 0, to: values.count, by: 2) {
            guard let response = response(values[place], first: values[place + 1], key) else { continue }
            if case .bytes = response.content { near.put(response, under: key, ticket) }
            found.append(response)
        }
        return found.sorted { $1.date < $0.date }
    }

    /// The response of a record, if it belongs to the key and its content exists.
    private func response(_ value: RedisReply, first: RedisReply, _ key: CacheKey) -> StoredResponse? {
        guard let found = value.bytes.flatMap({ RedisRecord($0) }), found.record.key == key else { return nil }
        let length = found.record.length
        if length == 0 { return StoredResponse(found.record.head, content: .bytes([]), key: key) }
        let piece = RedisRecord.content(first, at: 0, of: length)
        if let piece, piece.count == length {
            return StoredResponse(found.record.head, content: .bytes(piece), key: key)
        }
        guard piece != nil || first == .integer(1) else { return nil }
        let reader = RedisContent(client, key: content(found.mark, of: key), count: length, first: piece)
        return StoredResponse(found.record.head, content: .elsewhere(reader), key: key)
    }

    // MARK: Storing

    public func write(under key: CacheKey, length: Int?) -> (any StoreWriter)? {
        beginListening()
        return client.mayAnswer ? RedisWriter(self, key) : nil
    }

    /// Stores the head after the content was sent in `chunks` pieces. `whole` is the content, if it is a single piece.
    func finish(
        _ key: CacheKey, _ head: StoredHead, mark: [UInt8], record: [UInt8], chunks: Int, whole: [UInt8]?
    ) {
        near.forget(key)
        if let whole {
            near.put(StoredResponse(head, content: .bytes(whole), key: key), under: key, near.ticket(for: key))
        }
        var keys = [index(key), content(mark, of: key)]
        if key.hasParts { keys.append(era(key)) }
        let arguments: [RedisArgument] = [
            RedisRecord.variant(of: head.vary),
            RedisArgument(mark + record), RedisArgument(milliseconds: RedisRecord.lifetime(head, at: now)),
            RedisArgument(chunks), RedisArgument(RedisStore.mostVariants), contents(key),
            RedisArgument(milliseconds: RedisStore.grace), channel, message(.key(key)),
            RedisArgument(RedisRecord.makeMark()), RedisArgument(milliseconds: RedisStore.longestEra),
        ]
        let command: [RedisArgument] = ["EVAL", RedisScripts.store, RedisArgument(keys.count)]
        client.send(command + keys + arguments, within: RedisStore.patience) { [near] in
            if $0 != .success(.integer(1)) { near.forget(key) }
        }
    }

    public func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey) {
        near.store?.replace(response, with: update, under: key)
        guard let record = RedisRecord.bytes(key, update, length: response.content.count) else {
            return remove(response, under: key)
        }
        client.send(change(response, to: record, living: RedisRecord.lifetime(update, at: now), key)) { [near] in
            if $0 != .success(.integer(1)) { near.forget(key) }
        }
    }

    public func remove(_ response: StoredResponse, under key: CacheKey) {
        near.forget(key)
        client.send(change(response, to: [], living: RedisStore.grace, key), within: RedisStore.patience) {
            // If the command failed, everything under the key has to be removed.
            if case .failure = $0 { self.owe(key) }
        }
    }

    private func change(
        _ response: StoredResponse, to record: [UInt8], living: Duration, _ key: CacheKey
    ) -> [RedisArgument] {
        let former = RedisRecord.bytes(key, response.head, length: response.content.count) ?? []
        return change(index(key), RedisRecord.variant(of: response.vary), former, to: record, living: living, key)
    }

    private func change(
        _ index: RedisArgument, _ variant: RedisArgument, _ former: [UInt8], to record: [UInt8], living: Duration,
        _ key: CacheKey
    ) -> [RedisArgument] {
        [
            "EVAL", RedisScripts.change, 1, index, variant, RedisArgument(former), RedisArgument(record),
            RedisArgument(milliseconds: living), contents(key), RedisArgument(milliseconds: RedisStore.grace), channel,
            message(.key(key)),
        ]
    }

    public func invalidate(_ key: CacheKey) {
        beginListening()
        let key = key.plain
        near.invalidate(key)
        let arguments: [RedisArgument] = [
            "EVAL", RedisScripts.invalidate, 2, index(key), era(key), contents(key),
            RedisArgument(milliseconds: RedisStore.grace),
            channel, message(.uri(key)),
        ]
        client.send(arguments, within: RedisStore.patience) { [weak self] result in
            if case .failure = result { self?.owe(key) } else { self?.owed.withLock { _ = $0.keys.remove(key) } }
        }
    }

    private func owe(_ key: CacheKey) {
        let key = key.plain
        owed.withLock { owed in
            if owed.keys.count < RedisStore.mostOwed { owed.keys.insert(key) } else { owed.isEverything = true }
        }
    }

    /// Called when Redis answers: removes the responses that could not be removed before.
    private func payWhatIsOwed() {
        let (keys, isEverything) = owed.withLock { owed in
            let begins = owed.isEverything && !owed.isPurging
            if begins { owed.isPurging = true }
            return (owed.keys, begins)
        }
        for key in keys { invalidate(key) }
        guard isEverything else { return }
        Task.detached { [weak self] in
            guard let self else { return }
            let isWhole = await self.purge { _, _ in true }.isWhole
            self.owed.withLock { owed in
                owed.isPurging = false
                if isWhole { owed.isEverything = false }
            }
        }
    }

    // MARK: The whole store

    /// The batch size, the maximum number of rounds and the time limit of a walk through all keys. They bound a walk, whatever
    /// the server sends.
    private static let batch = 64
    private static let mostRounds = 1_000_000
    private static let longestWalk = Duration.seconds(30)

    public func purge(where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge {
        beginListening()
        var purge = StorePurge(count: 0)
        let isWalked = await walk { items in
            let wanted = items.filter { isSelected($0.found.record.key, $0.found.record.head) }
            let commands = wanted.map { item in
                let key = item.found.record.key
                let record = Array(item.value.dropFirst(item.found.mark.count))
                return change(
                    item.index, RedisArgument(item.variant), record, to: [], living: RedisStore.grace, key)
            }
            for result in await client.commands(commands, within: RedisStore.patience) {
                switch result {
                case .success(.integer(1)): purge.count += 1
                case .success: break  // replaced or removed meanwhile
                case .failure: purge.isWhole = false
                }
            }
            return true
        }
        // Other gateways, and this one, may hold responses that are no longer in Redis.
        near.clear()
        let word: [RedisArgument] = ["PUBLISH", channel, message(.several)]
        let isSaid = (try? await client.command(word, within: RedisStore.patience)) != nil
        if !isWalked || !isSaid { purge.isWhole = false }
        return purge
    }

    public func list(limit: Int, where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> [StoredItem] {
        var items: [StoredItem] = []
        _ = await walk { found in
            for item in found where items.count < limit && isSelected(item.found.record.key, item.found.record.head) {
                let record = item.found.record
                items.append(StoredItem(key: record.key, head: record.head, size: record.length + item.value.count))
            }
            return items.count < limit
        }
        return items
    }

    private struct Item {
        let index: RedisArgument
        let variant: [UInt8]
        let value: [UInt8]
        let found: RedisRecord
    }

    /// Passes every response that exists during the whole walk, on all masters, to `body`, until that returns false. Returns
    /// whether the walk was complete and every response could be read.
    private func walk(_ body: ([Item]) async -> Bool) async -> Bool {
        let first = SystemLoopClock().now()
        let masters = await client.masters(within: RedisStore.patience)
        var isWhole = !masters.isEmpty
        for master in masters {
            guard await walk(master, since: first, body) else {
                isWhole = false
                // An unreachable master does not hide the others; `body` can end the whole walk.
                if masters.count > 1, await body([]) { continue }
                return false
            }
        }
        // Keys may have moved from a master that was not examined yet to one that was.
        return await client.masters(within: RedisStore.patience) == masters && isWhole
    }

    private func walk(
        _ master: RedisUrl.Place, since first: LoopInstant, _ body: ([Item]) async -> Bool
    ) async -> Bool {
        var cursor = RedisArgument("0")
        var isWhole = true
        for _ in 0..<RedisStore.mostRounds where SystemLoopClock().now() - first < RedisStore.longestWalk {
            let scan: [RedisArgument] = [
                "SCAN", cursor, "MATCH", RedisArgument(indexes + "*"), "COUNT", RedisArgument(RedisStore.batch * 4),
            ]
            let reply: RedisReply
            do {
                guard
                    let result = await client.commands([scan], at: master, within: RedisStore.patience).first
                else { return false }
                reply = try result.get()
            } catch {
                WareLog.shared.log(.warning, "\(client.definition.servers): not all keys were examined: \(error)")
                return false
            }
            guard let parts = reply.array, parts.count == 2, let next = parts[0].bytes, let keys = parts[1].array else {
                return false
            }
            var names = keys.compactMap(\.bytes).filter { $0.starts(with: indexes.utf8) }[...]
            while !names.isEmpty {
                let some = names.prefix(RedisStore.batch)
                names = names.dropFirst(some.count)
                let (items, areAll) = await self.items(some.map { RedisArgument($0) })
                if !areAll { isWhole = false }
                guard await body(items) else { return false }
            }
            if next == [UInt8(ascii: "0")] { return isWhole }
            cursor = RedisArgument(next)
        }
        return false
    }

    /// The responses under these keys, and whether all commands were answered.
    private func items(_ indexes: [RedisArgument]) async -> (items: [Item], areAll: Bool) {
        let replies = await client.commands(indexes.map { ["HGETALL", $0] }, within: RedisStore.patience)
        var items: [Item] = []
        var areAll = true
        for (index, reply) in zip(indexes, replies) {
            // A refused key has another type, so it is not a response of a gateway.
            if case .failure(let failure) = reply, failure.kind != .refused { areAll = false }
            guard case .success(.array(let parts)) = reply, parts.count % 2 == 0 else { continue }
            for place in stride(from: 0, to: parts.count, by: 2) {
                guard let variant = parts[place].bytes, let value = parts[place + 1].bytes,
                    let found = RedisRecord(value)
                else { continue }
                items.append(Item(index: index, variant: variant, value: value, found: found))
            }
        }
        return (items, areAll)
    }

    /// The server that can share credentials and rate limits as well.
    public var server: (any AnyObject & Sendable)? { client }

    /// Ends all connections.
    public func close() { client.close() }

    /// The state of the server.
    public var status: RedisStatus { client.status }

    /// The contents of the store in memory; the contents of Redis are not counted.
    public var census: StoreCensus { near.census }
}
