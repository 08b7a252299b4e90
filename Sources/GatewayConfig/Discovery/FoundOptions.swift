import HttpWare

/// The options that labels of a container, or a service file, may have. The list is short on purpose: containers are not trusted as the file is.
struct FoundOptions: Sendable {
    /// The beginning of our labels.
    static let prefix = "httpware."
    /// The maximum size of one label, in bytes.
    private static let largest = 64 << 10
    /// The maximum number of hosts and paths that one service claims.
    static let mostClaims = 100
    private static let mostWares = 100
    /// More mistakes of one instance are not reported.
    private static let mostMistakes = 20

    /// Whether the container is a service at all.
    var isEnabled = true
    /// The service's name.
    var name: String?
    /// The hosts and paths of its requests; empty if no route of its own leads to it.
    var claims: [Located<RouteClaim>] = []
    /// A chain of the configuration.
    var chain: Located<String>?
    /// Wares, as in a chain.
    var wares: [ConfigNode] = []
    /// Options of the service.
    var service: [ConfigNode.Entry] = []
    /// The port of the program in the container.
    var port: Int?
    /// The network by which the container is reached.
    var network: String?
    /// When the service was made, in seconds since 1970, if a service file says so.
    var made: Int?
    /// The addresses that a service file names.
    var endpoints: [SocketAddress] = []
    /// The mistakes in all of it.
    private(set) var mistakes: [ConfigError] = []

    /// The options of a service that may be written here: none of them names a file, a variable, or another part of the configuration.
    static let serviceKeys = [
        "balance", "hashKey", "hashBound", "healthCheck", "ejection", "slowStart", "protocol", "timeouts", "pool",
        "limits",
        "host", "rewriteRedirects", "rewriteCookies",
    ]

    /// The wares that may be written here: they change, limit or answer the requests of their own service, and read nothing else.
    static let wares: Set<String> = [
        "bodyLimit", "circuitBreaker", "coalesce", "compress", "concurrency", "cors", "forwarded", "hedge", "ipRule",
        "mock", "rateLimit", "redirect", "requestHeaders", "requestId", "requiredHeaders", "responseHeaders", "retry",
        "rewrite", "securityHeaders", "throttle", "timeout", "userAgent",
    ]

    /// Reads labels that begin with `prefix`. `place` names the container.
    init(labels: [(key: String, value: String)], of place: String) {
        var entries: [ConfigNode.Entry] = []
        for (key, value) in labels {
            let file = "\(place), label \(key.onOneLine.shortened)"
            let location = SourceLocation(file: file, line: 1, column: 1)
            let name = String(key.dropFirst(FoundOptions.prefix.count))
            guard value.utf8.count <= FoundOptions.largest else {
                mistakes.append(
                    ConfigError(at: location, keyPath: "", message: "is longer than \(FoundOptions.largest >> 10) KiB"))
                continue
            }
            var node = ConfigNode(.scalar(value, isQuoted: false), at: location)
            if ["wares", "service"].contains(name) {
                let (read, found) = YamlReader.read(Array(value.utf8), file: file)
                mistakes += found.all
                guard let read else { continue }
                node = read
            } else if name == "route" {
                node = FoundOptions.list(value, at: location)
            }
            entries.append(ConfigNode.Entry(key: name, location: location, value: node))
        }
        let location = SourceLocation(file: place, line: 0, column: 0)
        read(ConfigNode(.map(entries), at: location), isFile: false)
    }

    /// Nothing, because of a mistake.
    init(mistake: String, at place: SourceLocation) {
        mistakes = [ConfigError(at: place, keyPath: "", message: mistake)]
    }

    /// Reads a service file.
    init(file bytes: [UInt8], path: String) {
        let (node, found) = YamlReader.read(bytes, file: path)
        mistakes += found.all
        guard let node else { return }
        read(node, isFile: true)
    }

    /// The members of a text with commas, each with its place.
    private static func list(_ text: String, at start: SourceLocation) -> ConfigNode {
        var column = start.column
        let members = text.split(separator: ",", omittingEmptySubsequences: false).map { part -> ConfigNode in
            var location = start
            location.column = column + part.prefix { $0 == " " }.count
            column += part.count + 1
            var bare = part.drop { $0 == " " }
            while bare.last == " " { bare.removeLast() }
            return ConfigNode(.scalar(String(bare), isQuoted: true), at: location)
        }
        return ConfigNode(.list(members), at: start)
    }

    private mutating func read(_ node: ConfigNode, isFile: Bool) {
        var options = OptionsReader(node, keyPath: "")
        options.recognize([
            "rule": "route", "routes": "route", "host": "route", "path": "route", "middlewares": "wares",
            "loadbalancer": "service", "ports": "port",
        ])
        var name: Located<String>?
        options.read("name", into: &name)
        if let name, !ServiceName.isName(name.value) {
            options.fail(at: "name", "is not a name; write letters, digits, -, _ and ., at most 64")
        }
        self.name = name?.value
        options.read("route", into: &claims)
        if claims.count > FoundOptions.mostClaims {
            options.fail(at: "route", "has \(claims.count) members; write at most \(FoundOptions.mostClaims)")
        }
        options.read("chain", into: &chain)
        if let node = options.readNode("wares", type: "list of wares") {
            if case .map = node.content {
                options.fail(at: "wares", "a map is not a list; write [{ rateLimit: { rate: 10/s } }]")
            } else if node.members.count > FoundOptions.mostWares {
                options.fail(
                    at: "wares", "has \(node.members.count) entries; write at most \(FoundOptions.mostWares)")
            } else {
                wares = node.members
            }
        }
        if let node = options.readNode("service", type: "options of a service") {
            if let entries = node.entries {
                service = entries
            } else {
                options.fail(at: "service", "\(node.shown) is not a map; write { healthCheck: { path: /healthz } }")
            }
        }
        if isFile {
            readEndpoints(&options)
            options.read("made", into: &made, in: 0...Int.max)
        } else {
            options.read("enable", into: &isEnabled)
            options.read("port", into: &port, in: 1...65_535)
            options.read("network", into: &network)
        }
        mistakes += options.finish()
        for entry in service where !FoundOptions.serviceKeys.contains(entry.key) {
            let isOfFile = ["tls", "headers", "sticky", "fallback", "chain", "proxyProtocol", "references"].contains(
                entry.key)
            let near = isOfFile ? "" : didYouMean(entry.key, among: FoundOptions.serviceKeys)
            let way =
                isOfFile
                ? "cannot be written here; write the service in the configuration, with discovered: NAME"
                : "unknown key\(near)"
            mistakes.append(ConfigError(at: entry.location, keyPath: "service.\(entry.key.shortened)", message: way))
        }
        for node in wares where mistakes.count < FoundOptions.mostMistakes { checkWare(node) }
        mistakes.removeLast(max(0, mistakes.count - FoundOptions.mostMistakes))
    }

    private mutating func readEndpoints(_ options: inout OptionsReader) {
        var read: [Located<SocketAddress>] = []
        options.read("endpoints", into: &read)
        if read.count > Balancing.mostFound {
            options.fail(at: "endpoints", "has \(read.count); write at most \(Balancing.mostFound)")
        }
        for address in read {
            if let reason = FoundOptions.reason(against: address.value) {
                options.fail(at: "endpoints", in: address.location, reason)
            }
        }
        endpoints = read.map(\.value)
    }

    /// Why requests cannot be sent to that address; `nil` if they can.
    static func reason(against address: SocketAddress) -> String? {
        guard let ip = address.address, let port = address.port, port > 0 else {
            return "\(address) is not an IP address with a port; write 192.0.2.10:8080"
        }
        if ip.isMetadata { return "\(address) is the address of a cloud's metadata" }
        return nil
    }

    /// A ware outside the list is a mistake here, and not when its chain is read, so that the sentence can say why.
    private mutating func checkWare(_ node: ConfigNode) {
        let common = ["if", "as", "order", "filter"]
        let key = node.entries?.first { !common.contains($0.key) }
        guard let name = node.text ?? key?.key, !FoundOptions.wares.contains(name) else { return }
        let near = didYouMean(name, among: FoundOptions.wares.sorted())
        let way = near.isEmpty ? "; write it in a chain of the configuration, and name the chain" : near
        mistakes.append(
            ConfigError(
                at: key?.location ?? node.location, keyPath: "wares",
                message: "\(name.quotedForErrors) is not a ware that a label can have\(way)"))
    }
}

/// A host, a path, or both, that a service takes requests for: `orders.example.com/api/**`.
struct RouteClaim: OptionValue, Hashable {
    /// The pattern of the host in lower case; `nil` for every host.
    let host: String?
    /// The pattern of the path; `nil` for every path.
    let path: String?

    static let optionType = "host and path"
    var optionText: String { (host ?? "") + (path ?? "") }

    init(optionText: String) throws(OptionMistake) {
        let slash = optionText.firstIndex(of: "/") ?? optionText.endIndex
        let host = optionText[..<slash]
        let path = optionText[slash...]
        guard !optionText.isEmpty else {
            throw OptionMistake("write a host, a path, or both, such as orders.example.com/api/**")
        }
        if optionText.contains("`") || optionText.contains("(") {
            throw OptionMistake("write a host and a path without functions, such as orders.example.com/api/**")
        }
        if !host.isEmpty { _ = try HostPattern(optionText: String(host)) }
        if !path.isEmpty { _ = try PathPattern(optionText: String(path)) }
        self.host = host.isEmpty ? nil : host.lowercased()
        self.path = path.isEmpty ? nil : String(path)
    }

    /// The order among claims: an exact host before a pattern before none, then the path, segment by segment: a text before a capture
    /// before `*` before `**`, and more segments before fewer. Names of captures do not count.
    static func isMoreSpecific(_ one: RouteClaim, than other: RouteClaim) -> Bool? {
        let ranks = (one.rank, other.rank)
        return ranks.0 == ranks.1 ? nil : other.rank.lexicographicallyPrecedes(one.rank)
    }

    private var rank: [Int] {
        [host.map { $0.contains("*") ? 1 : 2 } ?? 0]
            + segments.map { $0 == "**" ? 0 : $0 == "*" ? 1 : $0 == "{}" ? 2 : 3 }
    }

    /// The segments of the path, without the names of captures.
    private var segments: [String] {
        (path ?? "/**").split(separator: "/").map { $0.contains("{") ? "{}" : String($0) }
    }

    /// The same for two claims of the same requests, whatever their captures are called.
    var key: String { (host ?? "") + "/" + segments.joined(separator: "/") + (path?.hasSuffix("/") == true ? "/" : "") }

    /// Whether the other claim is for every path below a prefix, and this one is inside it, at the same host.
    func isInside(_ other: RouteClaim) -> Bool {
        guard host == other.host, key != other.key, other.segments.last == "**" else { return false }
        return segments.starts(with: other.segments.dropLast())
    }
}
