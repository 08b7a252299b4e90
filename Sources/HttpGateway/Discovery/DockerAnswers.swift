import GatewayConfig
import HttpWare

/// The answers of Docker's API, as far as they are used: lists of containers, and events. An engine may say anything, so every member is optional.
struct DockerContainer: Sendable, Equatable {
    /// The state of the program.
    enum Health: Sendable, Equatable {
        /// No check is defined.
        case unchecked
        case starting, healthy, unhealthy
    }

    let id: String
    /// The name without the slash in front.
    let name: String
    let labels: [(key: String, value: String)]
    let isRunning: Bool
    var health: Health
    /// When it was made, in seconds since 1970.
    let made: Int
    /// The TCP ports that the image or the container exposes, in order.
    var ports: [UInt16]
    /// The addresses by network, in name order.
    let networks: [(name: String, address: IPAddress)]
    /// Whether it has no network of its own: the machine's.
    let usesHostNetwork: Bool

    /// The limits of one list, so that no answer takes more than its bytes.
    static let mostContainers = 5000
    private static let mostLabels = 500

    /// Reads an element of the list of containers; `nil` if it has no identity.
    init?(_ json: JsonValue) {
        guard let id = json["Id"]?.string, DockerContainer.isIdentity(id) else { return nil }
        self.id = id
        let names = json["Names"]?.elements?.compactMap(\.string) ?? []
        name = String((names.first ?? String(id.prefix(12))).drop { $0 == "/" })
        labels = DockerContainer.labels(json["Labels"])
        isRunning = json["State"]?.string == "running"
        health = DockerContainer.health(json["Status"]?.string ?? "")
        made = max(0, json["Created"]?.whole ?? 0)
        var ports: Set<UInt16> = []
        for port in json["Ports"]?.elements ?? [] where port["Type"]?.string ?? "tcp" == "tcp" {
            if let number = port["PrivatePort"]?.whole.flatMap(UInt16.init(exactly:)), number > 0 {
                ports.insert(number)
            }
        }
        self.ports = ports.sorted()
        usesHostNetwork = json["HostConfig"]?["NetworkMode"]?.string == "host"
        networks = DockerContainer.networks(json["NetworkSettings"]?["Networks"])
    }

    private static func labels(_ json: JsonValue?) -> [(key: String, value: String)] {
        (json?.members ?? []).prefix(mostLabels).compactMap { member in
            member.value.string.map { (member.name, $0) }
        }
    }

    private static func networks(_ json: JsonValue?) -> [(name: String, address: IPAddress)] {
        (json?.members ?? []).prefix(100).compactMap { member in
            let texts = ["IPAddress", "GlobalIPv6Address"].compactMap { member.value[$0]?.string }
            return texts.lazy.compactMap { IPAddress($0) }.first.map { (member.name, $0) }
        }.sorted { $0.name < $1.name }
    }

    /// The health by its name in the details of a container; `nil` if no check is defined.
    static func health(named name: String?) -> Health? {
        switch name {
        case "healthy": .healthy
        case "unhealthy": .unhealthy
        case "starting": .starting
        default: nil
        }
    }

    /// The health, as the list shows it: `Up 3 minutes (healthy)`.
    private static func health(_ status: String) -> Health {
        if status.hasSuffix("(healthy)") { return .healthy }
        if status.hasSuffix("(unhealthy)") { return .unhealthy }
        return status.hasSuffix("(health: starting)") || status.hasSuffix("(starting)") ? .starting : .unchecked
    }

    /// Whether the text can stand in a path.
    static func isIdentity(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    static func == (one: Self, other: Self) -> Bool {
        one.id == other.id && one.name == other.name && one.isRunning == other.isRunning && one.health == other.health
            && one.made == other.made && one.ports == other.ports && one.usesHostNetwork == other.usesHostNetwork
            && one.labels.elementsEqual(other.labels) { $0 == $1 }
            && one.networks.elementsEqual(other.networks) { $0 == $1 }
    }

    /// A label's value.
    func label(_ key: String) -> String? { labels.first { $0.key == key }?.value }

    /// The name of its service, if no label of ours says another: that of a compose service with its project, else its own.
    var serviceName: String {
        guard let service = label("com.docker.compose.service") ?? label("io.podman.compose.service") else {
            return name
        }
        let project = label("com.docker.compose.project") ?? label("io.podman.compose.project") ?? ""
        return project.isEmpty ? service : "\(service)-\(project)"
    }

    /// The container with its labels, which take time to read.
    var labelled: FoundInstance { FoundInstance(container: name, service: serviceName, made: made, labels: labels) }

    /// The container as an instance of its service. `known` is the same with its labels, if they were read before. `leaving` says that it has been told to stop.
    func instance(
        network wanted: String?, onlyLabelled: Bool, leaving isLeaving: Bool, reading known: FoundInstance? = nil
    ) -> FoundInstance {
        var instance = known ?? labelled
        if onlyLabelled, !instance.isLabelled {
            instance.ignore(because: "has no label that begins with httpware.")
            return instance
        }
        if label("com.docker.compose.oneoff")?.lowercased() == "true", label("httpware.enable") != "true" {
            instance.ignore(
                because: "is a one-off container of compose; label httpware.enable: true makes it a service")
            return instance
        }
        if let reason = reasonToWait(instance, isLeaving) {
            instance.use([], unless: reason)
            return instance
        }
        switch (port(instance), address(instance.network ?? wanted)) {
        case (.failure(let reason), _): instance.use([], unless: reason.text)
        case (_, .failure(let reason)): instance.use([], unless: reason.text)
        case (.success(let port), .success(let address)):
            let place = SocketAddress.ip(address, port: port)
            instance.use([place], unless: address.isMetadata ? "\(place) is the address of a cloud's metadata" : nil)
        }
        return instance
    }

    private func reasonToWait(_ instance: FoundInstance, _ isLeaving: Bool) -> String? {
        if instance.isOff { return "label httpware.enable is false" }
        if !isRunning { return "is not running" }
        if isLeaving { return "is stopping" }
        switch health {
        case .starting: return "its health check has not passed yet"
        case .unhealthy: return "its health check fails"
        case .unchecked, .healthy: return nil
        }
    }

    /// Why a container cannot be used.
    struct Reason: Error {
        let text: String
    }

    private func port(_ instance: FoundInstance) -> Result<UInt16, Reason> {
        if let port = instance.port.flatMap(UInt16.init(exactly:)) { return .success(port) }
        if ports.count == 1 { return .success(ports[0]) }
        let shown = ports.prefix(8).map(String.init).joined(separator: ", ")
        return .failure(
            Reason(
                text: (ports.isEmpty ? "exposes no port" : "exposes several ports (\(shown))")
                    + "; write label httpware.port"))
    }

    private func address(_ wanted: String?) -> Result<IPAddress, Reason> {
        if usesHostNetwork { return .success(IPAddress(ipv4: 0x7f00_0001)) }
        if let wanted {
            // Compose puts the project's name in front.
            let found = networks.first { $0.name == wanted } ?? networks.first { $0.name.hasSuffix("_" + wanted) }
            if let found { return .success(found.address) }
            return .failure(Reason(text: "is not in network \(wanted)"))
        }
        if networks.count == 1 { return .success(networks[0].address) }
        let names = networks.prefix(8).map(\.name).joined(separator: ", ")
        return .failure(
            Reason(
                text: networks.isEmpty
                    ? "has no address in a network"
                    : "is in several networks (\(names)); write network under discover.docker, or label httpware.network"
            ))
    }
}

/// An event of the engine, as far as it is used.
struct DockerEvent {
    /// The container that was told to stop; `nil` for every other event.
    let stopping: String?
    /// The container that has ended, or started; `nil` for every other event.
    let changed: String?

    /// The signals by which engines stop containers.
    private static let stops: Set<String> = [
        "15", "9", "2", "3", "SIGTERM", "SIGKILL", "SIGINT", "SIGQUIT", "28", "SIGWINCH",
    ]

    /// Reads one line of the stream; anything that is not an event of a known kind only says that something happened.
    init(_ line: [UInt8]) {
        let json = try? JsonValue(line, rules: .lenient)
        let actor = json?["Actor"]
        let action = json?["Action"]?.string ?? json?["status"]?.string
        let id = actor?["ID"]?.string ?? json?["id"]?.string
        let signal = actor?["Attributes"]?["signal"]?.string ?? "15"
        let isStop = action == "kill" && DockerEvent.stops.contains(signal)
        let known = id.flatMap { DockerContainer.isIdentity($0) ? $0 : nil }
        stopping = isStop ? known : nil
        changed = ["die", "died", "start", "restart"].contains(action ?? "") ? known : nil
    }
}
