/// The stores and caches of a gateway, as the admin listener reports them.
struct CacheOverview: Decodable {
    /// One store.
    struct Store: Decodable {
        let name: String
        let kind: String
        let responses: Int
        let bytes: Int
        let limit: Int
        let evicted: Int
        let redis: Redis?
    }

    /// The state of a store's server.
    struct Redis: Decodable {
        let connections: Int
        let subscribed: Bool
        let commands: Int
        let failures: Int
        let fault: String?
        let master: String?
        let nodes: Int?
        let nodesUp: Int?

        /// The state in a few words.
        var line: String {
            let state =
                fault
                ?? (subscribed ? "answers" : connections > 0 ? "answers, but does not report changes" : "not asked yet")
            var servers = master.map { "; master \($0)" } ?? ""
            if let nodes { servers += "; \(nodesUp ?? 0) of \(nodes) masters up" }
            return "\(state)\(servers); \(commands) commands, \(failures) failed"
        }
    }

    /// The results of caches for the requests of one route.
    struct Route: Decodable {
        let listener: String
        let route: String?
        let service: String?
        let requests: Int
        let hits: Int
        let hitRatio: Double?
        let results: [String: Int]
    }

    let stores: [Store]
    let routes: [Route]

    /// The stores and the caches as two tables.
    var lines: [String] {
        let head = ["STORE", "KIND", "RESPONSES", "SIZE", "LIMIT", "EVICTED"]
        let stores = stores.map { store in
            [
                store.name, store.kind, String(store.responses), TerminalStyle.size(store.bytes),
                TerminalStyle.size(store.limit), String(store.evicted),
            ].map(TerminalStyle.plain.shown)
        }
        var lines = TextTable.lines([head] + stores)
        for store in self.stores {
            if let redis = store.redis { lines.append(TerminalStyle.plain.shown("\(store.name): Redis \(redis.line)")) }
        }
        guard !routes.isEmpty else { return lines }
        let results = ["hit", "stale", "collapsed", "validated", "miss", "bypass"]
        let routes = routes.map { route in
            let ratio = route.hitRatio.map { "\(Int(($0 * 1000).rounded()) / 10).\(Int(($0 * 1000).rounded()) % 10)%" }
            let counts = results.map { String(route.results[$0] ?? 0) }
            return
                ([route.listener, route.route ?? "-", route.service ?? "-", String(route.requests)] + counts
                + [ratio ?? "-"]).map(TerminalStyle.plain.shown)
        }
        lines.append("")
        lines += TextTable.lines(
            [["LISTENER", "ROUTE", "SERVICE", "REQUESTS"] + results.map { $0.uppercased() } + ["HITS"]] + routes)
        return lines
    }
}

/// The responses of a store, as the admin listener lists them.
struct CacheList: Decodable {
    /// A stored response.
    struct Entry: Decodable {
        let key: String
        let identity: String?
        let status: Int
        let size: Int?
        let age: Int
        let ttl: Int
        let range: String?
        let vary: [String]
        let tags: [String]
    }

    let store: String
    let entries: [Entry]
    let more: Bool

    /// The heading, then a row for each response.
    static func rows(_ lists: [CacheList]) -> [[String]] {
        let rows = lists.flatMap { list in
            list.entries.map { entry in
                var key = entry.key
                if let range = entry.range { key += " (\(range))" }
                if let identity = entry.identity { key += " (of \(identity))" }
                return [
                    list.store, String(entry.status), entry.size.map(TerminalStyle.size) ?? "-", "\(entry.age)s",
                    entry.ttl > 0 ? "\(entry.ttl)s" : "stale",
                    entry.vary.isEmpty ? "-" : entry.vary.joined(separator: ","),
                    entry.tags.isEmpty ? "-" : entry.tags.joined(separator: ","), key,
                ].map(TerminalStyle.plain.shown)
            }
        }
        return [["STORE", "STATUS", "SIZE", "AGE", "TTL", "VARY", "TAGS", "KEY"]] + rows
    }
}

/// The responses under one key, as the admin listener reports them.
struct CacheEntry: Decodable {
    /// One response.
    struct Response: Decodable {
        /// A field line.
        struct Field: Decodable {
            let name: String
            let value: String
        }

        let status: Int
        let size: Int?
        let age: Int
        let ttl: Int
        let identity: String?
        let range: String?
        let vary: [String]
        let tags: [String]
        let received: String
        let lifetime: Int
        let heuristic: Bool
        let staleWhileRevalidate: Int?
        let staleIfError: Int?
        let alwaysValidated: Bool
        let neverStale: Bool
        let fields: [Field]
    }

    let store: String
    let key: String
    let responses: [Response]

    /// The responses with all their properties, in several lines each.
    var lines: [String] {
        var lines = ["\(key) in \(store)"]
        for response in responses {
            lines.append("")
            let left = response.ttl > 0 ? "fresh for \(response.ttl)s" : "stale for \(-response.ttl)s"
            lines.append(
                "  status \(response.status), \(response.size.map(TerminalStyle.size) ?? "size unknown"), age \(response.age)s, \(left)"
            )
            lines.append(
                "  received \(response.received), lifetime \(response.lifetime)s\(response.heuristic ? " (guessed)" : "")"
            )
            if let identity = response.identity { lines.append("  only for identity \(identity)") }
            if let range = response.range { lines.append("  a part: \(range)") }
            if !response.vary.isEmpty { lines.append("  varies by \(response.vary.joined(separator: ", "))") }
            if !response.tags.isEmpty { lines.append("  tags \(response.tags.joined(separator: ", "))") }
            if let seconds = response.staleWhileRevalidate { lines.append("  stale while revalidated \(seconds)s") }
            if let seconds = response.staleIfError { lines.append("  stale on errors \(seconds)s") }
            if response.alwaysValidated { lines.append("  validated before each use") }
            if response.neverStale { lines.append("  never used stale") }
            lines += response.fields.map { "    \($0.name): \($0.value)" }
        }
        return lines.map(TerminalStyle.plain.shown)
    }
}
