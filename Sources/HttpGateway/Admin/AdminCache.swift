import HttpCaching
import HttpWare
import HttpWareRedis

extension AdminEndpoint {
    /// The stores with their contents, the results of the caches of the routes, and purging.
    static func cache(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/cache", access: .known) { _, _ in
                .wait { _, _ in
                    let numbers = await subject.census.numbers()
                    let stores = ShownStore.all(subject.status.now.configuration)
                    return .abort(
                        with: .json(
                            .object([
                                ("stores", .list(stores.map(json))),
                                ("routes", .list(CacheSum.byPlace(numbers).map { json($0.place, $0.sum) })),
                            ])))
                }
            },
            AdminEndpoint(path: "/v1/cache/*/entries", access: .known) { request, _ in
                look(request, subject) { try entries(request, $0) }
            },
            AdminEndpoint(path: "/v1/cache/*/entry", access: .known) { request, _ in
                look(request, subject) { try entry(request, $0, subject) }
            },
            AdminEndpoint(path: "/v1/cache/*/purge", access: .known, isWrite: true) { request, _ in
                look(request, subject) { try purge(request, $0, subject) }
            },
        ]
    }

    /// A parameter of the request is invalid.
    private struct Mistake: Error { let text: String }

    private static func look(
        _ request: AdminRequest, _ subject: AdminSubject, _ body: (ShownStore) throws -> Verdict
    ) -> Verdict {
        let found = ShownStore.all(subject.status.now.configuration).first { $0.name == request.argument }
        guard let found else { return .abort(with: .problem(.notFound, "there is no store with this name")) }
        do {
            return try body(found)
        } catch {
            let text = (error as? Mistake)?.text ?? "the request cannot be read"
            return .abort(with: .problem(.badRequest, text))
        }
    }

    private static func selection(_ request: AdminRequest, _ known: [String]) throws(Mistake) -> CacheSelection {
        for name in request.names where !known.contains(name) {
            throw Mistake(text: "there is no such parameter; use \(known.joined(separator: ", "))")
        }
        return CacheSelection(
            key: request.text("key"), prefix: request.text("prefix"), tag: request.text("tag"))
    }

    // MARK: Lists

    /// The maximum number of responses in a list.
    private static let mostEntries = 1000

    private static func entries(_ request: AdminRequest, _ store: ShownStore) throws(Mistake) -> Verdict {
        let selection = try selection(request, ["prefix", "tag", "limit"])
        var limit = 100
        if let text = request.parameter("limit") {
            guard let number = Int(text), (1...mostEntries).contains(number) else {
                throw Mistake(text: "limit is a number from 1 to \(mostEntries)")
            }
            limit = number
        }
        let most = limit
        return .wait { _, exchange in
            let now = exchange.wallNow
            let items = await apart { await store.store.list(limit: most + 1, where: selection.selects) }
            let shown = items.prefix(most).map { (key: ShownKey($0.key), item: $0) }
                .sorted {
                    ($0.key.target, $0.key.identity ?? "", $0.key.share ?? "") < (
                        $1.key.target, $1.key.identity ?? "", $1.key.share ?? ""
                    )
                }
            return .abort(
                with: .json(
                    .object([
                        ("store", .text(store.name)),
                        ("entries", .list(shown.map { .object(given: summary($0.item, $0.key, now)) })),
                        ("more", .bool(items.count > most)),
                    ])))
        }
    }

    /// Describes the responses under one key, without their content.
    private static func entry(
        _ request: AdminRequest, _ store: ShownStore, _ subject: AdminSubject
    ) throws(Mistake) -> Verdict {
        let selection = try selection(request, ["key"])
        guard let text = selection.key, !text.isEmpty else {
            throw Mistake(text: "the parameter key is missing: ?key=…")
        }
        let scans = needsScan(selection, store, subject)
        return .wait { _, exchange in
            let now = exchange.wallNow
            let items: [StoredItem]
            if scans {
                items = await apart { await store.store.list(limit: mostUnderKey, where: selection.selects) }
            } else {
                let key = CacheKey(Array(text.utf8))
                items = await store.store.load(key).map { StoredItem(key: key, head: $0.head, size: $0.size) }
            }
            guard !items.isEmpty else {
                return .abort(with: .problem(.notFound, "nothing is stored under this key"))
            }
            return .abort(
                with: .json(
                    .object([
                        ("store", .text(store.name)), ("key", .text(ShownKey(items[0].key).target)),
                        ("responses", .list(items.map { .object(given: details($0, now)) })),
                    ])))
        }
    }

    private static let mostUnderKey = 1000

    // MARK: Purging

    private static func purge(
        _ request: AdminRequest, _ store: ShownStore, _ subject: AdminSubject
    ) throws(Mistake) -> Verdict {
        let selection = try selection(request, ["key", "prefix", "tag"])
        guard selection != CacheSelection() else {
            throw Mistake(text: "say what to remove: ?key=…, ?prefix=… or ?tag=…; an empty prefix means everything")
        }
        let scans = needsScan(selection, store, subject) || selection.prefix != nil || selection.tag != nil
        return .wait { _, _ in
            let count: Int
            if let text = selection.key, !scans {
                let key = CacheKey(Array(text.utf8))
                count = await store.store.load(key).count
                // Also done if nothing was found, because other gateways may share the store.
                store.store.invalidate(key)
            } else {
                let purge = await apart { await store.store.purge(where: selection.selects) }
                guard purge.isWhole else {
                    return .abort(
                        with: .problem(
                            .serviceUnavailable,
                            "not all of \(store.name) could be searched: \(purge.count) purged, others may be left"))
                }
                count = purge.count
            }
            return .abort(with: .json(.object([("store", .text(store.name)), ("purged", .number(count))])))
        }
    }

    /// Whether all keys must be searched: because credentials are hidden in this one, or because keys of the store can have
    /// other parts than their URI.
    private static func needsScan(_ selection: CacheSelection, _ store: ShownStore, _ subject: AdminSubject) -> Bool {
        !selection.isPlainKey || store.mayKeepApart(subject.status.now.configuration)
    }

    /// Runs a slow operation outside the loops.
    static func apart<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        await Task.detached { await body() }.value
    }

    // MARK: JSON

    private static func json(_ shown: ShownStore) -> Json {
        let census = shown.store.census
        return .object(given: [
            ("name", .text(shown.name)), ("kind", .text(shown.kind)), ("responses", .number(census.responses)),
            ("bytes", .number(census.bytes)), ("limit", .number(census.limit)), ("evicted", .number(census.evicted)),
            ("unwritten", .number(census.unwritten)), ("records", shown.records?.census.map(json)),
            ("redis", (shown.store as? RedisStore).map { json($0.status) }), ("at", .text("\(shown.location)")),
        ])
    }

    private static func json(_ census: RecordCensus) -> Json {
        .object([
            ("records", .number(census.records)), ("bytes", .number(census.bytes)), ("limit", .number(census.limit)),
            ("refused", .number(census.refused)),
        ])
    }

    private static func json(_ status: RedisStatus) -> Json {
        .object(given: [
            ("connections", .number(status.connections)), ("subscribed", .bool(status.isSubscribed)),
            ("commands", .number(status.commands)), ("failures", .number(status.failures)),
            ("fault", status.fault.map(Json.text) ?? .null), ("master", status.master.map(Json.text)),
            ("nodes", status.nodes.map { .number($0.count) }), ("nodesUp", status.nodes.map { .number($0.up) }),
        ])
    }

    private static func json(_ place: CacheSum.Place, _ sum: CacheSum) -> Json {
        .object([
            ("listener", .text(place.listener)), ("route", .optional(place.route)),
            ("service", .optional(place.service)), ("requests", .number(sum.requests)), ("hits", .number(sum.hits)),
            ("hitRatio", sum.hitRatio.map(Json.decimal) ?? .null),
            ("results", .object(CacheResult.allCases.map { ($0.name, .number(sum[$0])) })),
        ])
    }

    private static func summary(_ item: StoredItem, _ key: ShownKey, _ now: WallTime) -> [(String, Json?)] {
        let head = item.head
        let age = max(0, head.age(at: now)) / 1_000_000_000
        let part = head.part.map { Json.text($0.text) }
        return [
            ("key", .text(key.target)), ("identity", key.identity.map(Json.text)),
            ("share", key.share.map(Json.text)),
            ("status", .number(head.status.code)), ("size", item.size.map(Json.number) ?? .null),
            ("age", .number(Int(age))), ("ttl", .number(Int(Int64(head.rules.lifetime) - age))), ("range", part),
            ("vary", .list(head.vary.names.map { .text($0.text) })), ("tags", .list(head.tags.map(Json.text))),
        ]
    }

    private static func details(_ item: StoredItem, _ now: WallTime) -> [(String, Json?)] {
        let (head, rules) = (item.head, item.head.rules)
        func seconds(_ number: UInt32?) -> Json { number.map { .number(Int($0)) } ?? .null }
        return summary(item, ShownKey(item.key), now) + [
            ("received", .text(GatewayLog.stamp(head.received))), ("date", .text(GatewayLog.stamp(head.date))),
            ("lifetime", .number(Int(rules.lifetime))), ("heuristic", .bool(rules.isHeuristic)),
            ("staleWhileRevalidate", seconds(rules.staleWhileRevalidate)),
            ("staleIfError", seconds(rules.staleIfError)), ("alwaysValidated", .bool(rules.needsValidation)),
            ("neverStale", .bool(rules.forbidsStale)),
            (
                "fields",
                .list(
                    head.fields.map { .object([("name", .text($0.name)), ("value", .text(shown($0.name, $0.value)))]) })
            ),
        ]
    }

    /// The value of a field, masked if it can be a credential.
    private static func shown(_ name: String, _ value: String) -> String {
        let isHidden = Redaction.fields.contains { $0.text.lowercased() == name.lowercased() }
        return isHidden || Redaction.isSecret(parameter: name) ? Redaction.mark : Redaction.target(value)
    }
}
