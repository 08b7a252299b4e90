/// Finds the routes whose host and path match a request, without testing each route.
///
/// Each host that a route names has a trie of path segments. Each suffix after a wildcard has one, too, and there is one for the
/// routes of any host. Hosts and segments are found in one hash table, by their bytes and their parent node. A place in
/// a trie proves that the path of its routes matches. It also proves the host, if the pattern has no port. A candidate lists the
/// conditions that are not proven.
///
/// A route with a regular expression for the path is at the root of its hosts, among the routes that are tested in order. A
/// table without such routes has none there. If a route names hosts and paths only in `any`, these lead to it.
///
/// The size is bounded. A route that would need more than 64 places for its hosts and paths together is placed only by
/// its paths. Only the first 12 segments of a pattern become nodes.
struct RouteIndex: Sendable {
    /// The conditions of a route that its place does not prove.
    struct Needs: OptionSet, Sendable {
        let rawValue: UInt8

        static let method = Needs(rawValue: 1)
        static let host = Needs(rawValue: 2)
        static let path = Needs(rawValue: 4)
        /// Other conditions than method, host and path.
        static let more = Needs(rawValue: 8)
    }

    /// A route at a place.
    struct Candidate: Sendable {
        let route: Int32
        var needs: Needs

        @inline(__always) var isProven: Bool { needs.rawValue == 0 }
    }

    /// A range of an array.
    struct Run: Sendable {
        var start: Int32 = 0
        var end: Int32 = 0

        @inline(__always) var range: Range<Int> { Range(uncheckedBounds: (Int(start), Int(end))) }
    }

    /// The place that a sequence of path segments leads to.
    struct Node: Sendable {
        let number: Int32
        /// The first of the routes at this node or below.
        let least: Int32
        /// The child for a captured segment, or -1.
        var capture: Int32 = -1
        var hasTexts = false
        /// The children for segments with `*`.
        var globs = Run()
        /// The routes whose pattern ends here; at a root, those without a path condition.
        var exact = Run()
        /// The routes whose pattern ends here with `/**`.
        var prefixes = Run()

        @inline(__always) var hasChildren: Bool { hasTexts || capture >= 0 || globs.end > globs.start }
    }

    /// The parents of the tries' roots, except the first.
    static let exactHosts: Int32 = -1
    static let wildcardHosts: Int32 = -2
    /// The root for the routes of any host.
    static let anyHost: Int32 = 0

    private static let mostPlaces = 64
    private static let deepest = 12

    private struct Slot {
        var parent: Int32
        /// -1 if the slot is empty.
        var child: Int32
        var text: Run
    }

    private(set) var nodes: [Node] = []
    private(set) var candidates: [Candidate] = []
    private(set) var globs: [(text: [UInt8], child: Int32)] = []
    /// The hash table; its size is a power of two, and at most half of the slots are used.
    private var slots: [Slot] = []
    private var texts: [UInt8] = []
    /// Whether any route names a host.
    private(set) var hasHosts = false
    /// For each length in bytes, whether a wildcard has a suffix of that length.
    private var suffixLengths: [Bool] = []

    /// The longest suffix behind a wildcard.
    @inline(__always) var longestSuffix: Int { suffixLengths.count - 1 }

    @inline(__always)
    func hasSuffix(ofLength count: Int) -> Bool { suffixLengths[count] }

    /// The child of a node for the text between two places; -1 without one.
    @inline(__always)
    func child(of parent: Int32, _ bytes: RawSpan, _ start: Int, _ end: Int) -> Int32 {
        let mask = slots.count &- 1
        var place = Int(truncatingIfNeeded: RouteIndex.hash(parent, bytes, start, end)) & mask
        while true {
            let slot = slots[place]
            if slot.child < 0 { return -1 }
            if slot.parent == parent, slot.text.range.count == end &- start, isText(slot.text, bytes, start) {
                return slot.child
            }
            place = (place &+ 1) & mask
        }
    }

    /// Whether the bytes from `start` on equal the text.
    @inline(__always)
    private func isText(_ text: Run, _ bytes: RawSpan, _ start: Int) -> Bool {
        let texts = texts.span.bytes
        var at = Int(text.start)
        var other = start
        while at &+ 8 <= Int(text.end) {
            if texts.word(at: at) != bytes.word(at: other) { return false }
            at &+= 8
            other &+= 8
        }
        while at < Int(text.end) {
            if texts.byte(at: at) != bytes.byte(at: other) { return false }
            at &+= 1
            other &+= 1
        }
        return true
    }

    /// Distributes the texts of configurations well. Only the configuration's author chooses the texts in the table, so it needs no secret.
    @inline(__always)
    private static func hash(_ parent: Int32, _ bytes: RawSpan, _ start: Int, _ end: Int) -> UInt64 {
        let factor: UInt64 = 0xff51_afd7_ed55_8ccd
        var hash =
            UInt64(truncatingIfNeeded: parent) &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(truncatingIfNeeded: end &- start)
        var at = start
        while at &+ 8 <= end {
            hash = (hash ^ bytes.word(at: at)) &* factor
            hash ^= hash &>> 32
            at &+= 8
        }
        if at < end {
            var rest: UInt64 = 0
            while at < end {
                rest = rest &<< 8 | UInt64(bytes.byte(at: at))
                at &+= 1
            }
            hash = (hash ^ rest) &* factor
        }
        return hash ^ hash &>> 29
    }
}

// MARK: Making

extension RouteIndex {
    /// Makes an index of the routes' conditions; a route is named by its position in the list.
    init(_ matches: [RequestMatch]) {
        var builder = Builder()
        for (route, match) in matches.enumerated() { builder.add(match, Int32(truncatingIfNeeded: route)) }
        self.init(builder)
    }

    /// The tries while they are built.
    private struct Builder {
        struct Edge: Hashable {
            enum Kind { case text, glob, capture }
            let parent: Int32
            let kind: Kind
            let text: [UInt8]
        }

        struct Growing {
            let least: Int32
            var capture: Int32 = -1
            var globs: [(text: [UInt8], child: Int32)] = []
            var exact: [Candidate] = []
            var prefixes: [Candidate] = []
        }

        var nodes = [Growing(least: 0)]
        var edges: [Edge: Int32] = [:]

        mutating func add(_ match: RequestMatch, _ route: Int32) {
            var needs: Needs = match.methods.isEmpty ? [] : .method
            if match.asksMore || !match.query.isEmpty { needs.insert(.more) }
            if match.hosts.isEmpty, match.paths.isEmpty, match.pathExpressions.isEmpty, add(anyOf: match, route, needs)
            {
                return
            }
            add(match, route, needs)
        }

        /// Adds a route that names hosts or paths only in `any` at the places of its members. Returns false if a member has neither, or
        /// if there are too many places.
        private mutating func add(anyOf match: RequestMatch, _ route: Int32, _ needs: Needs) -> Bool {
            var places = 0
            for member in match.any {
                if member.hosts.isEmpty, member.paths.isEmpty || !member.pathExpressions.isEmpty { return false }
                places += max(1, member.hosts.count) * max(1, member.paths.count)
            }
            guard places > 0, places <= RouteIndex.mostPlaces else { return false }
            for member in match.any { add(member, route, needs) }
            return true
        }

        private mutating func add(_ match: RequestMatch, _ route: Int32, _ needs: Needs) {
            let isSpread = match.hosts.count > 1 && match.paths.count > 1
            if isSpread, match.hosts.count * match.paths.count > RouteIndex.mostPlaces {
                return add(match, route, needs.union(.host), from: RouteIndex.anyHost)
            }
            if match.hosts.isEmpty { add(match, route, needs, from: RouteIndex.anyHost) }
            for host in match.hosts {
                let parent = host.isWildcard ? RouteIndex.wildcardHosts : RouteIndex.exactHosts
                let root = child(Edge(parent: parent, kind: .text, text: host.name), route)
                add(match, route, host.port == nil ? needs : needs.union(.host), from: root)
            }
        }

        private mutating func add(_ match: RequestMatch, _ route: Int32, _ needs: Needs, from root: Int32) {
            let paths = match.paths
            if !match.pathExpressions.isEmpty {
                // No segments lead there: each request with a path is tested.
                nodes[Int(root)].prefixes.add(route, needs.union(.path))
                return
            }
            if paths.isEmpty { nodes[Int(root)].exact.add(route, needs) }
            for path in paths {
                var node = root
                for segment in path.segments.prefix(RouteIndex.deepest) {
                    let edge =
                        switch segment {
                        case .text(let text): Edge(parent: node, kind: .text, text: text)
                        case .glob(let text): Edge(parent: node, kind: .glob, text: text)
                        case .capture: Edge(parent: node, kind: .capture, text: [])
                        }
                    node = child(edge, route)
                }
                if path.segments.count > RouteIndex.deepest {
                    nodes[Int(node)].prefixes.add(route, needs.union(.path))
                } else if path.isPrefix {
                    nodes[Int(node)].prefixes.add(route, needs)
                } else {
                    nodes[Int(node)].exact.add(route, needs)
                }
            }
        }

        /// The child at an edge. If it does not exist, it is made, with this route as its first.
        private mutating func child(_ edge: Edge, _ route: Int32) -> Int32 {
            if let child = edges[edge] { return child }
            let child = Int32(truncatingIfNeeded: nodes.count)
            edges[edge] = child
            nodes.append(Growing(least: route))
            switch edge.kind {
            case .text: break
            case .glob: nodes[Int(edge.parent)].globs.append((edge.text, child))
            case .capture: nodes[Int(edge.parent)].capture = child
            }
            return child
        }
    }

    private init(_ builder: Builder) {
        for (number, growing) in builder.nodes.enumerated() {
            var node = Node(number: Int32(truncatingIfNeeded: number), least: growing.least, capture: growing.capture)
            node.globs = RouteIndex.append(growing.globs, to: &globs)
            node.exact = RouteIndex.append(growing.exact, to: &candidates)
            node.prefixes = RouteIndex.append(growing.prefixes, to: &candidates)
            nodes.append(node)
        }
        let hung = builder.edges.filter { $0.key.kind == .text }
        var capacity = 2
        while capacity < 2 * hung.count { capacity *= 2 }
        slots = Array(repeating: Slot(parent: 0, child: -1, text: Run()), count: capacity)
        suffixLengths = [false]
        var known: [[UInt8]: Run] = [:]
        for (edge, child) in hung {
            let text = known[edge.text] ?? RouteIndex.append(edge.text, to: &texts)
            known[edge.text] = text
            put(Slot(parent: edge.parent, child: child, text: text))
            if edge.parent >= 0 { nodes[Int(edge.parent)].hasTexts = true } else { hasHosts = true }
            if edge.parent == RouteIndex.wildcardHosts {
                let missing = edge.text.count + 1 - suffixLengths.count
                if missing > 0 { suffixLengths += Array(repeating: false, count: missing) }
                suffixLengths[edge.text.count] = true
            }
        }
    }

    private static func append<Element>(_ elements: [Element], to all: inout [Element]) -> Run {
        let start = Int32(truncatingIfNeeded: all.count)
        all += elements
        return Run(start: start, end: Int32(truncatingIfNeeded: all.count))
    }

    private mutating func put(_ slot: Slot) {
        let mask = slots.count - 1
        let range = slot.text.range
        var place = Int(
            truncatingIfNeeded: RouteIndex.hash(slot.parent, texts.span.bytes, range.lowerBound, range.upperBound))
        place &= mask
        while slots[place].child >= 0 { place = (place + 1) & mask }
        slots[place] = slot
    }
}

extension [RouteIndex.Candidate] {
    /// Appends a route after earlier ones. If it is already the last one, for another of its hosts or paths, the conditions that either
    /// place proves count as proven.
    fileprivate mutating func add(_ route: Int32, _ needs: RouteIndex.Needs) {
        if let last, last.route == route {
            self[count - 1].needs.formIntersection(needs)
        } else {
            append(RouteIndex.Candidate(route: route, needs: needs))
        }
    }
}
