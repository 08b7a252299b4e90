import HttpWare

/// A condition on requests, as the gateways of others write them: compared, negated and joined in any way.
indirect enum RequestTest: Hashable, Sendable {
    /// All of these; without any, every request.
    case all([RequestTest])
    /// One of these; without any, no request.
    case any([RequestTest])
    /// Everything but this.
    case not(RequestTest)
    /// A host pattern of ours.
    case host(String)
    /// Hosts with exactly one label before this name.
    case hostBelow(String)
    /// A condition on the path; letter case may not count.
    case path(PathTest, ignoresCase: Bool)
    /// A method.
    case method(String)
    /// A field with a value, or `~` and an expression; `nil`: the field is there.
    case header(String, String?)
    /// A parameter with a value, or `~` and an expression; `nil`: the parameter is there.
    case query(String, String?)
    /// A cookie with a value, or `~` and an expression.
    case cookie(String, String?)
    /// A network of clients.
    case client(String)
    /// `http` or `https`.
    case scheme(String)
    /// A condition that has no counterpart here, as it was written.
    case unknown(String)

    /// Every request.
    static let always = RequestTest.all([])
    /// No request.
    static let never = RequestTest.any([])

    /// The conditions that have no counterpart here.
    var unknowns: [String] {
        switch self {
        case .all(let members), .any(let members): members.flatMap(\.unknowns)
        case .not(let inner): inner.unknowns
        case .unknown(let text): [text]
        default: []
        }
    }

    /// Whether it asks for the path.
    var asksPath: Bool {
        switch self {
        case .all(let members), .any(let members): members.contains(where: \.asksPath)
        case .not(let inner): inner.asksPath
        case .path: true
        default: false
        }
    }

    /// The number of conditions in it.
    var size: Int {
        switch self {
        case .all(let members), .any(let members): members.reduce(1) { $0 + $1.size }
        case .not(let inner): inner.size + 1
        default: 1
        }
    }

    /// A value that is compared as it is, as `headers`, `query` and `cookies` write it.
    static func literal(_ value: String) -> String {
        value.hasPrefix("~") ? "~^" + PathTest.escapedLiteral(value) + "$" : value
    }

    /// Hosts that an expression describes, without their ports; `nil` if it cannot be told for a host with a port.
    static func host(matching expression: String) -> RequestTest? {
        let whole = ["", "^", ".*", ".+", "^.*", "^.+", "^.*$", "^.+$"]
        if whole.contains(expression) { return .always }
        guard expression.hasSuffix("$"), !expression.hasSuffix("\\$") else {
            return .header("Host", "~(?i)" + expression)
        }
        // The end of the host may be followed by a port, so an alternative that ends elsewhere cannot be told.
        guard !expression.contains("|") || expression.dropLast().contains(where: { $0 == ")" }) else { return nil }
        return .header("Host", "~(?i)" + expression.dropLast() + "(:[0-9]+)?$")
    }

    /// A condition that every request meets that may meet this one: what is unknown counts as met.
    var widened: RequestTest { widened(true) }

    private func widened(_ isPositive: Bool) -> RequestTest {
        switch self {
        case .all(let members): .all(members.map { $0.widened(isPositive) })
        case .any(let members): .any(members.map { $0.widened(isPositive) })
        case .not(let inner): .not(inner.widened(!isPositive))
        case .unknown: isPositive ? .always : .never
        default: self
        }
    }

    /// Whether `*.example.com` is already said by names below it.
    private static func isImplied(_ test: RequestTest, by others: [RequestTest]) -> Bool {
        guard case .hostBelow(let name) = test else { return false }
        return others.contains { other in
            let hosts: [RequestTest]
            if case .any(let members) = other { hosts = members } else { hosts = [other] }
            return hosts.allSatisfy { host in
                guard case .host(let text) = host, !text.hasPrefix("*") else { return false }
                return text.lowercased().hasSuffix("." + name.lowercased())
                    && !text.dropLast(name.utf8.count + 1).contains(".")
            }
        }
    }

    /// The condition without members that change nothing, and with negations only at the leaves of `all` and `any`.
    ///
    /// `depth` bounds the recursion; a condition that is nested deeper is unknown.
    func simplified(_ depth: Int = 0) -> RequestTest {
        guard depth < 40 else { return .unknown("conditions nested too deep") }
        switch self {
        case .all(let members):
            var kept: [RequestTest] = []
            for member in members.map({ $0.simplified(depth + 1) }) {
                if member == .never { return .never }
                if case .all(let inner) = member { kept += inner } else { kept.append(member) }
            }
            var seen: Set<RequestTest> = []
            kept = kept.filter { seen.insert($0).inserted }
            kept = kept.filter { !Self.isImplied($0, by: kept) }
            return kept.count == 1 ? kept[0] : .all(kept)
        case .any(let members):
            var kept: [RequestTest] = []
            for member in members.map({ $0.simplified(depth + 1) }) {
                if member == .always { return .always }
                if case .any(let inner) = member { kept += inner } else { kept.append(member) }
            }
            var seen: Set<RequestTest> = []
            kept = kept.filter { seen.insert($0).inserted }
            return kept.count == 1 ? kept[0] : .any(kept)
        case .not(let inner):
            switch inner {
            case .not(let twice): return twice.simplified(depth + 1)
            case .all(let members): return RequestTest.any(members.map { .not($0) }).simplified(depth + 1)
            case .any(let members): return RequestTest.all(members.map { .not($0) }).simplified(depth + 1)
            case .path(let path, _) where path.pattern == nil: return .never
            default: return self
            }
        case .path(let path, _) where path.pattern == nil: return .always
        default: return self
        }
    }
}

extension PathTest {
    /// The text as a part of a regular expression that means nothing but it, byte for byte.
    static func escapedLiteral(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if "\\^$.|?*+()[]{}#".unicodeScalars.contains(scalar) { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}
