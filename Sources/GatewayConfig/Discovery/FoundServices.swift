// One file: claims, conflicts and entries share the groups, and are made again together.

public import HttpWare

/// The services that were found, as parts of a configuration, and what is wrong with them.
///
/// A route of the files comes before all of these. Of two services that claim the same host and path, the older one has them.
public struct FoundServices: Sendable {
    /// Something to know about a found service.
    public struct Problem: Sendable, Hashable {
        /// The place for people: a container and its label, or a file with line and column.
        public let place: String
        /// The text: begins in lower case, ends without a full stop.
        public let message: String
        /// Whether the service, or the instance, is left out because of it.
        public let leavesOut: Bool
    }

    /// The instances of one name.
    struct Group: Sendable {
        let name: String
        /// The instance whose labels count: the oldest one.
        let leader: FoundInstance
        let instances: [FoundInstance]

        var addresses: [SocketAddress] {
            var seen: Set<SocketAddress> = []
            return instances.flatMap(\.addresses).filter { seen.insert($0).inserted }
        }

        /// The service file that says the same.
        var file: String {
            let options = leader.options
            var members: [(String, ConfigNode)] = [
                ("name", .text(name)), ("made", ConfigNode(integerLiteral: leader.made)),
                ("endpoints", .list(addresses.map { .text("\($0)") })),
            ]
            let claims = options.claims.map { ConfigNode.text($0.value.optionText) }
            if !claims.isEmpty { members.append(("route", .list(claims))) }
            if let chain = options.chain { members.append(("chain", .text(chain.value))) }
            if !options.wares.isEmpty { members.append(("wares", ConfigNode(.list(options.wares)))) }
            if !options.service.isEmpty { members.append(("service", ConfigNode(.map(options.service)))) }
            return ConfigNode.map(members).prettyJson + "\n"
        }

        /// The places that errors of its labels name.
        func isPlace(_ file: String) -> Bool {
            instances.contains { file == $0.place || file.hasPrefix($0.place + ", label ") }
        }
    }

    /// The endpoints of each found service by name, if a route can reach it.
    public private(set) var addresses: [String: [SocketAddress]] = [:]
    /// The mistakes and conflicts.
    public private(set) var problems: [Problem] = []
    /// The problems of several services.
    private var conflicts: [Problem] = []
    /// The problems of addresses.
    private var ofAddresses: [Problem] = []
    /// The problems that were found before the whole configuration was checked.
    private var ofGroups: [Problem] = []
    /// Everything that was found, also what is not used.
    public let instances: [FoundInstance]
    /// The parts of a configuration.
    private(set) var entries: [ConfigNode.Entry] = []
    /// The services that can be used, in the order of their claims.
    private(set) var groups: [Group] = []
    private let isPostware: @Sendable (String) -> Bool
    /// The labels of the groups before any was left out, by name: these services are there already when instances change.
    private var standing: [String: [String]] = [:]
    /// The services of the files, and for each found service the one that takes its endpoints.
    private let names: Set<String>
    private let owners: [String: String]
    /// The listeners that serve the found routes; `nil` for all.
    private let listeners: ConfigNode?
    /// The chains that labels may name.
    private let chains: Set<String>
    /// The service that has each claim.
    private var claimed: [String: String]
    /// The addresses on which the gateway itself listens.
    private var own: [SocketAddress] = []
    /// The entries before any was left out, to tell whether more than addresses changed.
    private var offered: [ConfigNode.Entry] = []

    /// Nothing.
    public static let none = FoundServices([], among: [], isPostware: { _ in false })

    /// Groups the instances, and makes entries of groups without a mistake. `written` has the entries of the files. A service that `former` has
    /// keeps its name and its claims, even if all its instances are new.
    init(
        _ instances: [FoundInstance], among written: [ConfigNode.Entry], keeping former: FoundServices? = nil,
        isPostware: @escaping @Sendable (String) -> Bool
    ) {
        self.instances = instances
        self.isPostware = isPostware
        let services = written.filter { $0.key == "services" }.flatMap { $0.value.entries ?? [] }
        names = Set(services.map(\.key))
        var owners: [String: String] = [:]
        for entry in services {
            if let name = entry.value["discovered"]?.text, owners[name] == nil { owners[name] = entry.key }
        }
        self.owners = owners
        let discover = written.first { $0.key == "discover" }?.value
        listeners = discover?["listeners"]
        chains = Set((discover?["chains"]?.members ?? []).compactMap(\.text))
        claimed = former?.claimed ?? [:]
        group(keeping: former)
        build()
        offered = entries
        ofGroups = problems
        standing = Dictionary(groups.map { ($0.name, $0.leader.written) }, uniquingKeysWith: { first, _ in first })
    }

    /// The same services with the present instances; `nil` if more changed than the instances of services.
    func updated(_ instances: [FoundInstance], among written: [ConfigNode.Entry]) -> FoundServices? {
        let next = FoundServices(instances, among: written, keeping: self, isPostware: isPostware)
        guard next.offered.count == offered.count,
            zip(next.offered, offered).allSatisfy({
                $0.key == $1.key && $0.value.bare(exactly: true) == $1.value.bare(exactly: true)
            })
        else { return nil }
        var result = next
        // The mistakes that the check of the whole configuration found are still there.
        let known = Set(ofGroups + ofAddresses)
        result.problems += problems.filter { !known.contains($0) }
        result.groups = next.groups.filter { group in groups.contains { $0.name == group.name } }
        result.entries = entries
        result.addresses = next.addresses.filter { addresses[$0.key] != nil }
        result.refuse(own)
        return result
    }

    /// Why an instance takes no requests; `nil` if it takes some.
    public func reason(for instance: FoundInstance) -> String? {
        if let unused = instance.unused { return unused }
        let places = Set(groups.first { $0.name == instance.service }?.instances.map(\.place) ?? [instance.place])
        let mistake = problems.first { problem in
            problem.leavesOut
                && (problem.place == instance.place || problem.place.hasPrefix(instance.place + ", label ")
                    || problem.place.hasPrefix(instance.place + ":"))
        }
        if let mistake { return mistake.message }
        return addresses[instance.service] == nil || !places.contains(instance.place) ? "no route leads to it" : nil
    }

    /// The problems as warnings of a check: an instance that is left out stops nothing else.
    public var warnings: [ConfigError] {
        problems.map { problem in
            ConfigError(
                at: SourceLocation(file: problem.place, line: 0, column: 0), severity: .warning, keyPath: "",
                message: problem.message)
        }
    }

    /// The service files by which a gateway finds the same services, by name: JSON, which is YAML.
    public var files: [String: String] {
        var files: [String: String] = [:]
        for group in groups { files[group.name] = group.file }
        return files
    }

    // MARK: Groups

    private mutating func group(keeping former: FoundServices?) {
        var byName: [String: [FoundInstance]] = [:]
        let usable = instances.filter { !$0.isIgnored && !$0.isOff }
        for instance in usable.sorted(by: { ($0.made, $0.place) < ($1.made, $1.place) }) {
            if owners[instance.service] != nil, instance.service != instance.naturalName, instance.source == "docker" {
                leaveOut(
                    instance.place,
                    "label httpware.name is \(instance.service), whose endpoints a service of the configuration takes; it is left out"
                )
                continue
            }
            byName[instance.service, default: []].append(instance)
        }
        let known = former?.standing ?? [:]
        for (name, members) in byName {
            guard let leader = members.first(where: { $0.written == known[name] }) ?? members.first else { continue }
            var same: [FoundInstance] = []
            for member in members {
                if member.written == leader.written, member.source == leader.source {
                    same.append(member)
                } else {
                    leaveOut(
                        member.place,
                        "has other labels than \(leader.place), which has service \(name); it is left out until they agree"
                    )
                }
            }
            for mistake in leader.options.mistakes { note(mistake) }
            if leader.options.mistakes.contains(where: { $0.severity == .error }) { continue }
            groups.append(Group(name: name, leader: leader, instances: same))
        }
        // A service that is there already comes before new ones, so that it keeps its claims.
        groups.sort { one, other in
            let (isOne, isOther) = (known[one.name] != nil, known[other.name] != nil)
            return isOne == isOther ? (one.leader.made, one.name) < (other.leader.made, other.name) : isOne
        }
    }

    private mutating func leaveOut(_ place: String, _ message: String) {
        problems.append(Problem(place: place, message: message, leavesOut: true))
    }

    private mutating func note(_ error: ConfigError) {
        let key = error.keyPath.isEmpty ? "" : error.keyPath + ": "
        problems.append(
            Problem(place: "\(error.location)", message: key + error.message, leavesOut: error.severity == .error))
    }

    /// Leaves out the groups that these errors are about. Returns whether there was one.
    mutating func leaveOut(_ errors: [ConfigError]) -> Bool {
        let places = Set(errors.map(\.location.file))
        let bad = groups.filter { group in places.contains(where: group.isPlace) }
        guard !bad.isEmpty else { return false }
        for error in errors where bad.contains(where: { $0.isPlace(error.location.file) }) { note(error) }
        let names = Set(bad.map(\.name))
        groups.removeAll { names.contains($0.name) }
        claimed = claimed.filter { !names.contains($0.value) }
        build()
        return true
    }

    /// Leaves out everything, for that reason.
    mutating func leaveOutAll(because reason: String) {
        for group in groups { leaveOut(group.leader.place, reason) }
        groups = []
        entries = []
        addresses = [:]
    }

    /// Refuses addresses that are listeners of this gateway, the admin listener above all.
    mutating func refuse(_ own: [SocketAddress]) {
        self.own = own
        for (name, found) in addresses {
            let refused = found.filter(isOwn)
            guard !refused.isEmpty else { continue }
            addresses[name] = found.filter { !isOwn($0) }
            for address in refused {
                let place = instances.first { $0.service == name && $0.addresses.contains(address) }?.place ?? name
                leaveOut(place, "\(address) is a listener of this gateway")
                if let problem = problems.last { ofAddresses.append(problem) }
            }
        }
    }

    private func isOwn(_ address: SocketAddress) -> Bool {
        let address = address.unmapped
        return own.contains { other in
            guard other.port == address.port, let ip = address.address else { return false }
            if ip.isLoopback || ip.isUnspecified || other.address?.unmapped == ip { return true }
            return other.address?.isUnspecified == true && MachineAddresses.all.contains(ip)
        }
    }

    /// Notes warnings about found services. Returns the others.
    mutating func taking(_ warnings: [ConfigError]) -> [ConfigError] {
        warnings.filter { warning in
            guard groups.contains(where: { $0.isPlace(warning.location.file) }) else { return true }
            note(warning)
            return false
        }
    }

    /// Whether an error is about a found service.
    func isPlace(_ file: String) -> Bool { groups.contains { $0.isPlace(file) } }

    // MARK: Entries

    private struct Claim {
        let group: Group
        let claim: Located<RouteClaim>
        let service: String
    }

    private mutating func build() {
        // Conflicts may have gone with a group that is left out.
        let former = Set(conflicts)
        problems.removeAll { former.contains($0) }
        let known = problems.count
        defer { conflicts = Array(problems[known...]) }
        var made: [ConfigNode.Entry] = []
        var ownChains: [ConfigNode.Entry] = []
        var claims: [Claim] = []
        let there = Set(groups.map(\.name))
        claimed = claimed.filter { there.contains($0.value) }
        let places = Dictionary(groups.map { ($0.name, $0.leader.place) }, uniquingKeysWith: { first, _ in first })
        addresses = [:]
        for group in groups {
            let options = group.leader.options
            if owners[group.name] != nil {
                addresses[group.name] = group.addresses
                if !options.claims.isEmpty {
                    noteUnused(
                        group,
                        "the configuration decides about the requests of service \(group.name); its labels do not")
                }
                continue
            }
            if names.contains(group.name) {
                leaveOut(
                    group.leader.place,
                    "the configuration has a service \(group.name) of its own; write discovered: \(group.name) there, or label httpware.name with another name"
                )
                continue
            }
            if let chain = options.chain, !chains.contains(chain.value) {
                leaveOut(
                    "\(chain.location)",
                    "chain \(chain.value.quotedForErrors) is not for labels; write discover: { chains: [NAME] } in the configuration with the chains that are"
                )
                continue
            }
            var own: [Located<RouteClaim>] = []
            for claim in options.claims {
                if let other = claimed[claim.value.key], other != group.name {
                    leaveOut(
                        "\(claim.location)",
                        "\(claim.value.optionText) is claimed by \(places[other] ?? other) before; it is left out")
                } else {
                    own.append(claim)
                    claimed[claim.value.key] = group.name
                }
            }
            guard !own.isEmpty else {
                if group.leader.isLabelled, options.claims.isEmpty {
                    noteUnused(
                        group,
                        "no route leads to it; write label httpware.route, or discovered: \(group.name) in a service of the configuration"
                    )
                }
                continue
            }
            addresses[group.name] = group.addresses
            made.append(service(of: group))
            if let chain = chain(of: group) { ownChains.append(chain) }
            claims += own.map { Claim(group: group, claim: $0, service: group.name) }
        }
        noteInside(claims)
        entries = []
        add("services", .map(made), unless: made.isEmpty)
        add("chains", .map(ownChains), unless: ownChains.isEmpty)
        add("routes", .list(routes(claims)), unless: claims.isEmpty)
    }

    private mutating func noteUnused(_ group: Group, _ message: String) {
        problems.append(Problem(place: group.leader.place, message: message, leavesOut: false))
    }

    /// A claim inside that of another service takes requests from it. That is common, and may be a mistake, so it is told.
    private mutating func noteInside(_ claims: [Claim]) {
        let wide = claims.filter { $0.claim.value.path?.hasSuffix("**") ?? true }
        guard wide.count * claims.count <= FoundServices.mostComparisons else { return }
        for inner in claims {
            let outer = wide.first { $0.group.name != inner.group.name && inner.claim.value.isInside($0.claim.value) }
            guard let outer else { continue }
            problems.append(
                Problem(
                    place: "\(inner.claim.location)",
                    message:
                        "\(inner.claim.value.optionText) is inside \(outer.claim.value.optionText) of \(outer.group.leader.place), and takes these requests",
                    leavesOut: false))
        }
    }

    private static let mostComparisons = 250_000

    private mutating func add(_ key: String, _ content: ConfigNode.Content, unless isEmpty: Bool) {
        guard !isEmpty else { return }
        entries.append(ConfigNode.Entry(key: key, location: .code, value: ConfigNode(content)))
    }

    /// The definition of the service. Programs in containers expect the client's `Host`, as behind other gateways that find them.
    private func service(of group: Group) -> ConfigNode.Entry {
        let place = SourceLocation(file: group.leader.place, line: 0, column: 0)
        var options = group.leader.options.service
        options.append(FoundServices.entry("discovered", group.name, at: place))
        if !options.contains(where: { $0.key == "host" }) {
            options.append(FoundServices.entry("host", "preserve", at: place))
        }
        return ConfigNode.Entry(key: group.name, location: place, value: ConfigNode(.map(options), at: place))
    }

    private static func entry(_ key: String, _ text: String, at place: SourceLocation) -> ConfigNode.Entry {
        ConfigNode.Entry(key: key, location: place, value: ConfigNode(.scalar(text, isQuoted: true), at: place))
    }

    /// The name of the chain that a service's wares make.
    static func chainName(of service: String) -> String {
        let name = "discovered." + service
        return name.utf8.count <= ServiceName.longest ? name : "discovered." + String(service.suffix(52))
    }

    /// The chain of the service's own wares; `nil` if it has none. A chain of the configuration comes before them.
    private func chain(of group: Group) -> ConfigNode.Entry? {
        let options = group.leader.options
        guard !options.wares.isEmpty else { return nil }
        let place = SourceLocation(file: group.leader.place, line: 0, column: 0)
        var lists: [ConfigNode.Entry] = []
        for (list, isPost) in [("middlewares", false), ("postwares", true)] {
            var members: [ConfigNode] = []
            if let chain = options.chain {
                members.append(
                    ConfigNode(.map([FoundServices.entry("use", chain.value, at: chain.location)]), at: chain.location))
            }
            members += options.wares.filter { isPostware(FoundServices.ware($0)) == isPost }
            lists.append(ConfigNode.Entry(key: list, location: place, value: ConfigNode(.list(members), at: place)))
        }
        return ConfigNode.Entry(
            key: FoundServices.chainName(of: group.name), location: place, value: ConfigNode(.map(lists), at: place))
    }

    private static func ware(_ node: ConfigNode) -> String {
        node.text ?? node.entries?.first { !["if", "as", "order", "filter"].contains($0.key) }?.key ?? ""
    }

    /// The routes, the more specific ones first, so that no service takes the requests that another one asks for by name.
    private func routes(_ claims: [Claim]) -> [ConfigNode] {
        let sorted = claims.enumerated().sorted { one, other in
            RouteClaim.isMoreSpecific(one.element.claim.value, than: other.element.claim.value)
                ?? (one.offset < other.offset)
        }.map(\.element)
        var counts: [String: Int] = [:]
        return sorted.map { claim in
            counts[claim.group.name, default: 0] += 1
            let number = counts[claim.group.name] ?? 1
            let place = claim.claim.location
            var match: [ConfigNode.Entry] = []
            if let host = claim.claim.value.host { match.append(FoundServices.entry("host", host, at: place)) }
            if let path = claim.claim.value.path { match.append(FoundServices.entry("path", path, at: place)) }
            var options = [
                FoundServices.entry(
                    "name", claim.group.name + "@" + claim.group.leader.source + (number == 1 ? "" : ".\(number)"),
                    at: place),
                FoundServices.entry("service", claim.service, at: place),
            ]
            if let listeners {
                options.append(ConfigNode.Entry(key: "listener", location: place, value: listeners))
            }
            if !match.isEmpty {
                options.append(
                    ConfigNode.Entry(key: "match", location: place, value: ConfigNode(.map(match), at: place)))
            }
            let written = claim.group.leader.options
            if !written.wares.isEmpty {
                options.append(
                    FoundServices.entry("chain", FoundServices.chainName(of: claim.group.name), at: place))
            } else if let chain = written.chain {
                options.append(FoundServices.entry("chain", chain.value, at: chain.location))
            }
            return ConfigNode(.map(options), at: place)
        }
    }
}
