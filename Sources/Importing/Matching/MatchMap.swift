import HttpWare

/// The map of a `match` or an `if`: one condition for each key, all of which must hold.
struct MatchMap: Hashable, Sendable {
    /// Fields, parameters or cookies by name, with the values of which one must be there.
    struct Named: Hashable, Sendable {
        /// The name as written.
        var name: String
        /// Values, or `~` and an expression.
        var values: [String]
    }

    var hosts: [String] = []
    var paths: [String] = []
    var ignoresCase = false
    var methods: [String] = []
    var headers: [Named] = []
    var query: [Named] = []
    var cookies: [Named] = []
    var clients: [String] = []
    var schemes: [String] = []
    var not: [MatchMap] = []
    var any: [MatchMap] = []

    /// The bounds of one `match`: levels of `not` and `any`, maps in them, and expressions of one `path`.
    private enum Limit {
        static let levels = 7
        static let maps = 200
        static let expressions = 32
    }

    /// The map that says the same as the condition; `nil` if it would be too large or too deep. The condition must be possible.
    init?(_ test: RequestTest) {
        let test = test.simplified()
        guard test.size <= Limit.maps * 10, let map = Self.map(test, level: 0), map.count <= Limit.maps,
            map.levels <= Limit.levels
        else { return nil }
        self = map
    }

    private init() {}

    /// Whether every request meets it.
    var isEmpty: Bool { self == MatchMap() }

    private var count: Int { 1 + not.reduce(0) { $0 + $1.count } + any.reduce(0) { $0 + $1.count } }

    private var levels: Int { ((not + any).map(\.levels).max() ?? -1) + 1 }

    private static func map(_ test: RequestTest, level: Int) -> MatchMap? {
        guard level < 40 else { return nil }
        var map = MatchMap()
        switch test {
        case .all(let members):
            for member in members {
                guard let other = Self.map(member, level: level + 1), map.join(other) else { return nil }
            }
        case .any(let members):
            if let list = list(members) { return list }
            var maps: [MatchMap] = []
            // Members that differ in their hosts or paths alone share a map.
            for group in groups(members) {
                if let list = list(group) {
                    maps.append(list)
                    continue
                }
                for member in group {
                    guard let other = Self.map(member, level: level + 1) else { return nil }
                    maps.append(other)
                }
            }
            map.any = maps
        case .not(let inner):
            guard let other = Self.map(inner, level: level + 1) else { return nil }
            map.not = [other]
        case .host(let host): map.hosts = [host]
        case .hostBelow(let name):
            // The pattern alone would also match several labels.
            map.hosts = ["*." + name]
            let expression = "~(?i)^[^.:]+\\." + PathTest.escapedLiteral(name) + "(:[0-9]+)?$"
            map.headers = [Named(name: "Host", values: [expression])]
        case .path(let path, let ignoresCase):
            if let pattern = path.pattern {
                map.paths = [pattern]
                map.ignoresCase = ignoresCase && pattern.utf8.contains { (0x41...0x5A).contains($0 & 0xDF) }
            }
        case .method(let method): map.methods = [method]
        case .header(let name, let value): map.headers = [Named(name: name, values: [value ?? "~^"])]
        case .query(let name, let value): map.query = [Named(name: name, values: [value ?? "~^"])]
        case .cookie(let name, let value): map.cookies = [Named(name: name, values: [value ?? "~^"])]
        case .client(let network): map.clients = [network]
        case .scheme(let scheme): map.schemes = [scheme]
        case .unknown: return nil
        }
        return map
    }

    /// Members of one kind as one list, if they are.
    private static func list(_ members: [RequestTest]) -> MatchMap? {
        var map = MatchMap()
        for member in members {
            switch member {
            case .host, .path, .method, .client, .scheme, .header, .query, .cookie:
                guard let one = Self.map(member, level: 0) else { return nil }
                if map.isEmpty {
                    map = one
                } else if !map.widen(by: one) {
                    return nil
                }
            default: return nil
            }
        }
        return members.isEmpty ? nil : map
    }

    private static func groups(_ members: [RequestTest]) -> [[RequestTest]] {
        var groups: [[RequestTest]] = []
        for member in members {
            if let last = groups.indices.last, list(groups[last] + [member]) != nil {
                groups[last].append(member)
            } else {
                groups.append([member])
            }
        }
        return groups
    }

    /// Adds the values of the other map, if both have the same single key.
    private mutating func widen(by other: MatchMap) -> Bool {
        var mine = self
        var theirs = other
        for key in [\MatchMap.hosts, \.paths, \.methods, \.clients, \.schemes] where !mine[keyPath: key].isEmpty {
            if key == \MatchMap.paths {
                let hasLetters = { (map: MatchMap) in
                    map.paths.contains { $0.utf8.contains { (0x41...0x5A).contains($0 & 0xDF) } }
                }
                let isMixed = mine.ignoresCase != theirs.ignoresCase && hasLetters(mine) && hasLetters(theirs)
                guard !isMixed, mine.paths.count < Limit.expressions else { return false }
                theirs.ignoresCase = mine.ignoresCase || theirs.ignoresCase
                mine.ignoresCase = theirs.ignoresCase
            }
            guard !theirs[keyPath: key].isEmpty else { return false }
            let values = theirs[keyPath: key].filter { !mine[keyPath: key].contains($0) }
            mine[keyPath: key] += values
            theirs[keyPath: key] = mine[keyPath: key]
            guard mine == theirs else { return false }
            self = mine
            return true
        }
        for key in [\MatchMap.headers, \.query, \.cookies] where mine[keyPath: key].count == 1 {
            guard theirs[keyPath: key].count == 1, mine[keyPath: key][0].name == theirs[keyPath: key][0].name else {
                return false
            }
            mine[keyPath: key][0].values += theirs[keyPath: key][0].values
            theirs[keyPath: key] = mine[keyPath: key]
            guard mine == theirs else { return false }
            self = mine
            return true
        }
        return false
    }

    /// Demands what the other map demands, too.
    /// `false` if the map would be too large.
    private mutating func join(_ other: MatchMap) -> Bool {
        var rest = MatchMap()
        for key in [\MatchMap.hosts, \.methods, \.clients, \.schemes] where !other[keyPath: key].isEmpty {
            if self[keyPath: key].isEmpty {
                self[keyPath: key] = other[keyPath: key]
            } else if Set(other[keyPath: key]).isSubset(of: self[keyPath: key]) {
                self[keyPath: key] = other[keyPath: key]
            } else if !Set(self[keyPath: key]).isSubset(of: other[keyPath: key]) {
                rest[keyPath: key] = other[keyPath: key]
            }
        }
        if !other.paths.isEmpty {
            if paths.isEmpty {
                (paths, ignoresCase) = (other.paths, other.ignoresCase)
            } else if paths != other.paths {
                (rest.paths, rest.ignoresCase) = (other.paths, other.ignoresCase)
            }
        }
        for key in [\MatchMap.headers, \.query, \.cookies] {
            for named in other[keyPath: key] {
                if self[keyPath: key].contains(where: { $0.name.lowercased() == named.name.lowercased() }) {
                    rest[keyPath: key].append(named)
                } else {
                    self[keyPath: key].append(named)
                }
            }
        }
        not += other.not.filter { !not.contains($0) }
        // A key stands once in a map: what demands it again goes one level down, into each member of `any`.
        var below: [MatchMap] = []
        if !rest.isEmpty { below.append(rest) }
        if !other.any.isEmpty {
            if any.isEmpty {
                any = other.any
            } else {
                var inner = MatchMap()
                inner.any = other.any
                below.append(inner)
            }
        }
        for inner in below {
            if any.isEmpty {
                any = [inner]
                continue
            }
            for index in any.indices {
                guard count <= Limit.maps, any[index].join(inner) else { return false }
            }
        }
        return count <= Limit.maps
    }
}
