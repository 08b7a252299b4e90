import HttpWare

/// A `location` of nginx with those nested in it.
struct NginxLocation: Sendable {
    /// How a location is found.
    enum Kind: Hashable, Sendable {
        /// `=`: the whole path.
        case exact
        /// The beginning of the path; `isFinal`: with `^~`, so that expressions are not tried.
        case prefix(isFinal: Bool)
        /// `~` or `~*`.
        case expression(ignoresCase: Bool)
        /// `@name`, which only other directives lead to.
        case named
    }

    /// How it is found.
    var kind: Kind
    /// The path, the expression or the name.
    var text: String
    /// The directive.
    var directive: NginxDirective
    /// The locations in its block.
    var nested: [NginxLocation]

    /// The directives of the block that are no locations.
    var own: [NginxDirective] { (directive.block ?? []).filter { $0.name != "location" } }

    /// The locations of a block; the recursion is as deep as blocks are, which the parser bounds.
    static func all(in block: [NginxDirective]) -> [NginxLocation] {
        block.compactMap { $0.name == "location" ? NginxLocation($0) : nil }
    }

    private init?(_ directive: NginxDirective) {
        var words = directive.words
        guard let first = words.first else { return nil }
        if words.count == 1 {
            for modifier in ["=", "^~", "~*", "~"] where first.hasPrefix(modifier) {
                words = [modifier, String(first.dropFirst(modifier.count))]
                break
            }
        }
        if words.count == 1 {
            kind = first.hasPrefix("@") ? .named : .prefix(isFinal: false)
            text = first
        } else {
            switch words[0] {
            case "=": kind = .exact
            case "^~": kind = .prefix(isFinal: true)
            case "~": kind = .expression(ignoresCase: false)
            case "~*": kind = .expression(ignoresCase: true)
            default: return nil
            }
            text = words[1]
        }
        self.directive = directive
        nested = Self.all(in: directive.block ?? [])
    }

    /// The condition on the path.
    var test: RequestTest {
        switch kind {
        case .exact: .path(.exact(text), ignoresCase: false)
        case .prefix: .path(.prefix(text), ignoresCase: false)
        case .expression(let ignoresCase):
            NginxCondition.isValid(text)
                ? .path(.expression(text), ignoresCase: ignoresCase) : .unknown("location ~ \(text)")
        case .named: .never
        }
    }

    /// Whether it is found by the beginning of the path.
    var isPrefix: Bool { if case .prefix = kind { true } else { false } }

    /// Whether it is found by an expression.
    var isExpression: Bool { if case .expression = kind { true } else { false } }
}

/// A location with the requests that it gets, in the order in which nginx finds locations.
struct NginxEntry {
    /// The requests, without those that earlier entries take.
    var test: RequestTest
    /// The location; `nil` for a redirection to the path with a slash.
    var location: NginxLocation?
    /// The scope around the location.
    var scope: NginxScope
    /// The place of the redirection.
    var place: SourceLocation
}

extension NginxEntry {
    /// The directives that make nginx redirect `/path` to `/path/`.
    private static let handlers: Set = [
        "proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass",
    ]

    /// The entries of a server, the first that matches wins.
    static func ordered(_ locations: [NginxLocation], _ scope: NginxScope) -> [NginxEntry] {
        let (strong, weak) = level(locations, scope, isTop: true)
        return strong + weak
    }

    /// Those that come before expressions of outer levels, and those that come after them.
    private static func level(
        _ locations: [NginxLocation], _ scope: NginxScope, isTop: Bool
    ) -> (strong: [NginxEntry], weak: [NginxEntry]) {
        var strong: [NginxEntry] = []
        var weak: [NginxEntry] = []
        let exacts = locations.filter { $0.kind == .exact }
        let prefixes = locations.filter(\.isPrefix).sorted { $0.text.utf8.count > $1.text.utf8.count }
        let expressions = locations.filter(\.isExpression)
        strong += exacts.map { NginxEntry($0, scope) }
        // `/path` is redirected if only `/path/` is there.
        let taken = Set((exacts + prefixes).map(\.text))
        var redirected: Set<String> = []
        for location in prefixes + exacts where location.text.hasSuffix("/") && location.text.utf8.count > 1 {
            let short = String(location.text.dropLast())
            guard !taken.contains(short), location.own.contains(where: { handlers.contains($0.name) }) else { continue }
            redirected.insert(location.text)
            strong.append(
                NginxEntry(
                    test: .path(.exact(short), ignoresCase: false), location: nil, scope: scope,
                    place: location.directive.place))
        }
        func test(_ location: NginxLocation) -> RequestTest {
            // The path without the slash is redirected before, so whole segments say the same.
            redirected.contains(location.text) && location.isPrefix
                ? .path(.segments(String(location.text.dropLast())), ignoresCase: false) : location.test
        }
        func longer(_ location: NginxLocation, _ isMeant: (NginxLocation) -> Bool) -> [RequestTest] {
            prefixes.filter {
                $0.text.utf8.count > location.text.utf8.count && $0.text.hasPrefix(location.text) && isMeant($0)
            }
            .map { RequestTest.not(test($0)) }
        }
        var finals: [NginxEntry] = []
        for location in prefixes {
            let inner = scope.entering(location.own)
            let nested = level(location.nested, inner, isTop: false)
            let itself = NginxEntry(
                test: test(location), location: location, scope: scope, place: location.directive.place)
            let rest = nested.weak.map { $0.limited([test(location)]) } + [itself]
            let others = longer(location) { _ in true }
            let before = nested.strong.map { $0.limited([test(location)] + others) }
            if location.kind == .prefix(isFinal: true), isTop, !expressions.isEmpty {
                let plain = longer(location) { $0.kind == .prefix(isFinal: false) }
                finals += nested.strong.map { $0.limited([test(location)] + plain) } + rest.map { $0.limited(plain) }
            } else {
                strong += before
                weak += rest
            }
        }
        strong += finals
        for location in expressions {
            let nested = level(location.nested, scope.entering(location.own), isTop: false)
            var entries = (nested.strong + nested.weak).map { $0.limited([location.test]) }
            entries.append(NginxEntry(location, scope))
            if !isTop {
                let stops = prefixes.filter { $0.kind == .prefix(isFinal: true) }.map { RequestTest.not($0.test) }
                entries = entries.map { $0.limited(stops) }
            }
            strong += entries
        }
        return (strong, weak)
    }

    private init(_ location: NginxLocation, _ scope: NginxScope) {
        self.init(test: location.test, location: location, scope: scope, place: location.directive.place)
    }

    private func limited(_ tests: [RequestTest]) -> NginxEntry {
        guard !tests.isEmpty else { return self }
        var entry = self
        entry.test = .all(tests + [test])
        return entry
    }

    /// The location that a fixed path leads to; `.some(nil)` is the server itself. `nil`: it cannot be told. `isWhole`: the path ends there.
    static func find(_ path: String, isWhole: Bool, in locations: [NginxLocation], depth: Int = 0) -> NginxLocation?? {
        guard depth < NginxParser.Limit.depth else { return nil }
        if isWhole, let exact = locations.first(where: { $0.kind == .exact && $0.text == path }) { return .some(exact) }
        if !isWhole, locations.contains(where: { $0.kind == .exact && $0.text.hasPrefix(path) }) { return nil }
        let prefixes = locations.filter(\.isPrefix)
        if !isWhole, prefixes.contains(where: { $0.text.utf8.count > path.utf8.count && $0.text.hasPrefix(path) }) {
            return nil
        }
        let longest = prefixes.filter { path.hasPrefix($0.text) }.max { $0.text.utf8.count < $1.text.utf8.count }
        if let longest, !longest.nested.isEmpty {
            guard let inner = find(path, isWhole: isWhole, in: longest.nested, depth: depth + 1) else { return nil }
            if let inner, inner.isExpression || inner.kind == .exact { return .some(inner) }
            if let inner { return expression(path, isWhole, locations, longest) ?? .some(inner) }
        }
        return expression(path, isWhole, locations, longest) ?? .some(longest)
    }

    /// Whether an expression begins with a fixed text that no path with this beginning has.
    private static func excludes(_ expression: String, _ path: String) -> Bool {
        guard expression.hasPrefix("^"), !expression.contains("|") else { return false }
        var fixed = Array(expression.utf8.dropFirst().prefix { !"\\^$.?*+()[]{}".utf8.contains($0) })
        // A quantifier belongs to the last byte.
        let next = expression.utf8.dropFirst(1 + fixed.count).first
        if let next, "?*{".utf8.contains(next), !fixed.isEmpty { fixed.removeLast() }
        return zip(fixed, path.utf8).contains { $0 != $1 }
    }

    /// The first expression that matches, or that may match.
    private static func expression(
        _ path: String, _ isWhole: Bool, _ locations: [NginxLocation], _ longest: NginxLocation?
    ) -> NginxLocation??? {
        if longest?.kind == .prefix(isFinal: true) { return nil }
        for location in locations {
            guard case .expression(let ignoresCase) = location.kind else { continue }
            if !ignoresCase, excludes(location.text, path) { continue }
            guard isWhole, location.nested.isEmpty else { return .some(nil) }
            guard let pattern = try? Pattern((ignoresCase ? "(?i)" : "") + location.text),
                let matches = try? Array(path.utf8).withUnsafeBytes({ try pattern.matches($0) })
            else { return .some(nil) }
            if matches { return .some(.some(location)) }
        }
        return nil
    }
}
