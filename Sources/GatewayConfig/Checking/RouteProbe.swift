import HttpWare

/// A request that a route matches, without its path. It is chosen so that as few other routes as possible match it.
///
/// It stands for all requests that the route matches with the same choice of values. If the route leaves a property open, the
/// probe has a value that no pattern names.
struct RouteProbe {
    enum Form { case path, asterisk, authority }

    /// The conditions of the route, with one member chosen from each `any`.
    let match: RequestMatch
    var form = Form.path
    /// The method; `nil` for one that no route names.
    var method: HttpMethod?
    /// The host; `nil` for one that no route names, or for none.
    var host: HostPattern?
    /// The bytes of the host.
    var hostBytes: [UInt8] = []
    /// The scheme; `nil` if it does not matter, because no route has a condition on it.
    var scheme: UriScheme?
    /// The network of the client; `nil` for a client in none of the named networks.
    var client: IPNetwork?
    var headers: [Chosen] = []
    var query: [Chosen] = []
    var cookies: [Chosen] = []

    /// A value that the request has.
    struct Chosen {
        let named: NamedMatch
        let value: ValueMatch
    }

    /// The path of a probe.
    struct Path {
        let bytes: [UInt8]
        /// Whether the probe stands for requests with exactly this path.
        let isExact: Bool
        /// The pattern of the route from which the path was made; `nil` if the route has none.
        let pattern: PathPattern?
    }

    /// A byte that no pattern contains, because patterns are normalised.
    static let unnamed: UInt8 = 0x01

    private static let mostChoices = 256

    /// The probes for one route; `nil` if there would be too many. With `schemes`, one probe for each scheme.
    static func all(
        of match: RequestMatch, takesConnect: Bool, mode: ListenerDefinition.Mode, schemes: Bool
    ) -> [RouteProbe]? {
        var result: [RouteProbe] = []
        for method in match.methods.isEmpty ? [nil] : match.methods.map(Optional.some) where method != .connect {
            result.append(RouteProbe(match: match, method: method))
        }
        if match.paths.isEmpty, match.pathExpressions.isEmpty, match.query.isEmpty {
            // `OPTIONS *` and CONNECT have no path.
            if match.methods.isEmpty || match.methods.contains(.options) {
                result.append(RouteProbe(match: match, form: .asterisk, method: .options))
            }
            if mode == .forward, takesConnect, match.schemes.isEmpty,
                match.methods.isEmpty || match.methods.contains(.connect)
            {
                result.append(RouteProbe(match: match, form: .authority, method: .connect))
            }
        }
        spread(&result, match.hosts) { probe, host in
            probe.host = host
            probe.hostBytes = host.isWildcard ? [unnamed] + host.name : host.name
        }
        let asked = match.schemes.isEmpty && schemes ? UriScheme.allCases : match.schemes
        spread(&result, asked) { $0.scheme = $1 }
        spread(&result, match.clients) { $0.client = $1 }
        for named in match.headers {
            spread(&result, named.values) { $0.headers.append(Chosen(named: named, value: $1)) }
        }
        for named in match.query { spread(&result, named.values) { $0.query.append(Chosen(named: named, value: $1)) } }
        for named in match.cookies {
            spread(&result, named.values) { $0.cookies.append(Chosen(named: named, value: $1)) }
        }
        return result.count <= mostChoices ? result : nil
    }

    /// Makes one probe for each value. If there are too many probes already, they stay as they are.
    private static func spread<Value>(
        _ probes: inout [RouteProbe], _ values: [Value], _ choose: (inout RouteProbe, Value) -> Void
    ) {
        guard !values.isEmpty, probes.count <= mostChoices else { return }
        probes = probes.flatMap { probe in
            values.map { value in
                var probe = probe
                choose(&probe, value)
                return probe
            }
        }
    }
}

// MARK: Standing

/// The relation of a condition to the requests that a probe stands for. The minimum is the relation of both conditions together,
/// and the maximum that of either one.
enum Standing: Int, Comparable {
    /// No request meets the condition.
    case never
    /// The probe does not meet the condition.
    case notHere
    case unknown
    /// The probe meets the condition, but perhaps not all requests.
    case here
    /// Every request meets the condition.
    case always

    static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }

    /// The relation of the opposite condition.
    var opposite: Standing {
        switch self {
        case .never: .always
        case .notHere: .here
        case .unknown: .unknown
        case .here: .notHere
        case .always: .never
        }
    }
}

extension RouteProbe {
    /// The relation of a match to the probe, without the path of the match. `path` is the path of the probe; `nil` if it is not
    /// known yet.
    func standing(_ other: RequestMatch, at path: Path?) -> Standing {
        var standing = min(methodStanding(other), hostStanding(other))
        standing = min(standing, schemeStanding(other), clientStanding(other))
        if !other.query.isEmpty, form != .path { return .never }
        for named in other.headers { standing = min(standing, chosen(named, among: headers) { $0.field == $1.field }) }
        for named in other.query { standing = min(standing, chosen(named, among: query) { $0.name == $1.name }) }
        for named in other.cookies { standing = min(standing, chosen(named, among: cookies) { $0.name == $1.name }) }
        for member in other.not where standing > .never && !match.not.contains(member) {
            standing = min(standing, whole(member, at: path).opposite)
        }
        if !other.any.isEmpty, standing > .never {
            standing = min(standing, other.any.reduce(.never) { max($0, whole($1, at: path)) })
        }
        return standing
    }

    /// The relation of a match, including its path, to the requests of the probe.
    private func whole(_ other: RequestMatch, at path: Path?) -> Standing {
        min(pathStanding(other.paths, other.pathExpressions, at: path), standing(other, at: path))
    }

    /// The relation of path patterns and expressions to the probe.
    func pathStanding(_ paths: [PathPattern], _ expressions: [Pattern], at path: Path?) -> Standing {
        if paths.isEmpty, expressions.isEmpty { return .always }
        guard form == .path else { return .never }
        if !match.pathExpressions.isEmpty, match.paths.isEmpty,
            match.pathExpressions.allSatisfy(expressions.contains)
        {
            return .always
        }
        guard let path else { return .unknown }
        if let pattern = path.pattern, paths.contains(where: { $0.covers(pattern) }) { return .always }
        var isMet = paths.contains { $0.matches(path.bytes.span) }
        for expression in expressions where !isMet {
            guard let isFound = path.bytes.withUnsafeBytes({ try? expression.matches($0) }) else { return .unknown }
            isMet = isFound
        }
        if path.isExact { return isMet ? .always : .never }
        return isMet ? .here : .notHere
    }

    private func methodStanding(_ other: RequestMatch) -> Standing {
        if other.methods.isEmpty { return .always }
        guard let method else { return .notHere }
        return other.methods.contains(method) ? .always : .never
    }

    private func hostStanding(_ other: RequestMatch) -> Standing {
        if other.hosts.isEmpty { return .always }
        guard let host else { return .notHere }
        if other.hosts.contains(where: { $0.matches(hostBytes.span, port: host.port) }) { return .always }
        let isNear = host.isWildcard || other.hosts.contains { $0.matches(hostBytes.span, port: $0.port) }
        return isNear ? .notHere : .never
    }

    private func schemeStanding(_ other: RequestMatch) -> Standing {
        if other.schemes.isEmpty { return .always }
        guard form != .authority else { return .never }
        guard let scheme else { return .notHere }
        return other.schemes.contains(scheme) ? .always : .never
    }

    private func clientStanding(_ other: RequestMatch) -> Standing {
        if other.clients.isEmpty { return .always }
        guard let client else { return .notHere }
        if other.clients.contains(where: { $0.covers(client) }) { return .always }
        return other.clients.contains { client.covers($0) } ? .notHere : .never
    }

    private func chosen(
        _ named: NamedMatch, among chosen: [Chosen], _ isSame: (NamedMatch, NamedMatch) -> Bool
    ) -> Standing {
        chosen.contains { isSame($0.named, named) && $0.value.isSurely(oneOf: named.values) } ? .always : .notHere
    }
}

extension IPNetwork {
    /// Whether the network contains all addresses of the other.
    fileprivate func covers(_ other: IPNetwork) -> Bool {
        prefixLength <= other.prefixLength && contains(other.address)
    }
}

extension ValueMatch {
    /// Whether every value that this one matches is surely matched by one of the others.
    fileprivate func isSurely(oneOf others: [ValueMatch]) -> Bool {
        others.contains { other in
            if self == other { return true }
            guard case .pattern(let pattern) = other else { return false }
            if ["", "^", ".*", "^.*"].contains(pattern.source) { return true }
            guard case .exactly(let value) = self else { return false }
            return Array(value.utf8).withUnsafeBytes { (try? pattern.matches($0)) ?? false }
        }
    }
}

// MARK: Choices

extension RequestMatch {
    private static let mostVariants = 64

    /// Matches without `any` that together match these requests. If there would be too many, a single match for these and more
    /// requests.
    var variants: [RequestMatch] {
        var plain = self
        plain.any = []
        guard !any.isEmpty else { return [plain] }
        var result: [RequestMatch] = []
        for member in any {
            result += plain.narrowed(by: member).variants
            if result.count > Self.mostVariants { return [plain] }
        }
        return result
    }

    /// The conditions of both matches. If one match cannot express both, the conditions of this one.
    func narrowed(by other: RequestMatch) -> RequestMatch {
        var both = self
        both.methods = Self.common(methods, other.methods)
        both.schemes = Self.common(schemes, other.schemes)
        if hosts.isEmpty { both.hosts = other.hosts }
        if clients.isEmpty { both.clients = other.clients }
        if paths.isEmpty, pathExpressions.isEmpty {
            both.paths = other.paths
            both.pathExpressions = other.pathExpressions
        } else if pathExpressions.isEmpty, other.pathExpressions.isEmpty {
            let narrower = other.paths.filter { path in paths.contains { $0.covers(path) } }
            if !narrower.isEmpty { both.paths = narrower }
        }
        both.headers += other.headers
        both.query += other.query
        both.cookies += other.cookies
        both.not += other.not
        both.any += other.any
        return both
    }

    private static func common<Value: Equatable>(_ values: [Value], _ others: [Value]) -> [Value] {
        if values.isEmpty { return others }
        let common = values.filter(others.contains)
        return common.isEmpty ? values : common
    }

    /// Whether the match, or a member of `not` or `any`, has a condition on the scheme.
    var asksScheme: Bool {
        !schemes.isEmpty || not.contains(where: \.asksScheme) || any.contains(where: \.asksScheme)
    }

    /// The number of conditions in `not` and `any`.
    var memberCount: Int { (not + any).reduce(0) { $0 + 1 + $1.memberCount } }
}
