import GatewayConfig
import HttpWare

/// The containers of an engine that speaks Docker's API (version 1.41; Podman's is the same): its list, asked again after each event.
///
/// Events only say that something happened, so a lost one does no harm; the list is also asked now and then without one. The
/// answers of the engine are bounded: a list in bytes and time, an event in bytes.
final class DockerSource: ServiceSource {
    let name = "docker"
    private let definition: DiscoverDefinition.Docker
    private let loop: EventLoop
    private let endpoint: Endpoint
    private let scheme: String
    private var found: (([FoundInstance]) -> Void)?
    private var failed: ((String) -> Void)?
    private var events: (any HttpCall)?
    private var question: (any HttpCall)?
    /// The details of containers by identity.
    private var details: [String: Details] = [:]
    private var stopping: [String: LoopInstant] = [:]
    private var line: [UInt8] = []
    private var isAskedAgain = false
    private var timer: LoopTimer?
    private var failures = 0
    private var asked = LoopInstant(nanoseconds: .min)

    /// The time from an event to the question, so that a burst asks once; then at most this often.
    private static let pause = Duration.milliseconds(10)
    private static let shortest = Duration.milliseconds(50)
    /// The list is asked this often without an event.
    private static let interval = Duration.seconds(30)
    /// Podman's list does not show the health of containers, and their checks cause no event: it is asked for this often.
    private static let healthInterval = Duration.seconds(1)
    private static let longestBackOff = Duration.seconds(10)
    /// A container that was told to stop and still runs after this time takes requests again.
    private static let longestStop = Duration.seconds(30)
    private static let largestList = ByteCount.mebibytes(8)
    private static let largestEvent = 256 << 10
    private static let patience = Duration.seconds(5)

    /// The part of a container's details that lists may lack.
    private struct Details {
        let ports: [UInt16]
        let health: DockerContainer.Health?
        /// The list for which they were asked.
        let list: Int
    }
    private var lists = 0
    /// The containers whose labels were read, by identity: labels of a container never change.
    private var read: [String: FoundInstance] = [:]
    /// The failures of the stream of events; the list is asked without it, too.
    private var streamFailures = 0
    private var streamTimer: LoopTimer?

    init(_ definition: DiscoverDefinition.Docker, loop: EventLoop) {
        self.definition = definition
        self.loop = loop
        switch definition.socket {
        case .unix(let path): endpoint = Endpoint(unixPath: path)
        case .tcp(let host, let port):
            endpoint = Endpoint(
                host: host, port: port, tls: definition.tls?.context, serverName: definition.tls?.serverName)
        }
        scheme = definition.tls == nil ? "http" : "https"
    }

    func start(found: @escaping ([FoundInstance]) -> Void, failed: @escaping (String) -> Void) {
        self.found = found
        self.failed = failed
        follow()
        ask()
    }

    func stop() {
        found = nil
        failed = nil
        timer?.cancel()
        streamTimer?.cancel()
        events?.cancel()
        question?.cancel()
        events = nil
        question = nil
    }

    private func request(_ path: String) -> HttpRequest? {
        try? HttpRequest(
            .get, "\(scheme)://\(endpoint.authority)/v1.41\(path)", fields: ["User-Agent": "httpware-discover"])
    }

    // MARK: Events

    private func follow() {
        guard found != nil, events == nil,
            let request = request("/events?filters=%7B%22type%22%3A%5B%22container%22%2C%22network%22%5D%7D")
        else { return }
        line = []
        // A call may end before it is returned.
        var hasEnded = false
        let call = SideCaller(to: endpoint, keepsConnections: false).follow(
            request, limits: CallLimits(timeout: DockerSource.patience, content: .kibibytes(64))
        ) { [weak self] bytes in
            self?.streamFailures = 0
            self?.take(bytes)
        } completion: { [weak self] result in
            hasEnded = true
            guard let self, found != nil else { return }
            events = nil
            // The list tells whether the engine can be asked.
            streamFailures += 1
            streamTimer?.cancel()
            streamTimer = loop.schedule(after: DockerSource.backOff(streamFailures)) { [weak self] in self?.follow() }
            if case .success = result, streamFailures > 1 { return }
            askSoon()
        }
        if !hasEnded { events = call }
    }

    /// The pause after that many failures in a row.
    private static func backOff(_ failures: Int) -> Duration {
        min(.milliseconds(100 << min(failures, 7)), longestBackOff)
    }

    /// Takes a piece of the stream: JSON values, one in a line. A line that is too long is skipped.
    private func take(_ bytes: UnsafeRawBufferPointer) {
        for part in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            if part.offset > 0 { endLine() }
            guard line.count + part.element.count <= DockerSource.largestEvent else {
                line = []
                continue
            }
            line += part.element
        }
        // Podman writes no line end behind an event.
        if line.last == UInt8(ascii: "}") { endLine() }
    }

    private func endLine() {
        guard !line.isEmpty else { return }
        let event = DockerEvent(line)
        if let id = event.changed { stopping[id] = nil }
        if let id = event.stopping, stopping.count < DockerContainer.mostContainers {
            stopping[id] = loop.now + DockerSource.longestStop
        }
        line.removeAll(keepingCapacity: true)
        askSoon()
    }

    // MARK: The list

    private func askSoon() {
        guard question == nil else {
            isAskedAgain = true
            return
        }
        later(max(DockerSource.pause, asked + DockerSource.shortest - loop.now))
    }

    private func later(_ pause: Duration) {
        guard found != nil else { return }
        if let due = timer?.due, due <= loop.now + pause { return }
        timer?.cancel()
        timer = loop.schedule(after: pause) { [weak self] in
            guard let self else { return }
            timer = nil
            ask()
        }
    }

    private func ask() {
        guard found != nil, question == nil, let request = request("/containers/json") else { return }
        asked = loop.now
        lists += 1
        isAskedAgain = false
        get(request) { [weak self] json in
            guard let self else { return }
            guard let elements = json.elements else { return fail("its list of containers is not a list") }
            let containers = elements.prefix(DockerContainer.mostContainers).compactMap { DockerContainer($0) }
            inspect(containers)
        }
    }

    /// Asks for something, within the bounds. `done` is called with the JSON value of an answer, `isAbsent` if there is another answer.
    private func get(
        _ request: HttpRequest, done: @escaping (JsonValue) -> Void, unless isAbsent: (() -> Void)? = nil
    ) {
        let limits = CallLimits(timeout: DockerSource.patience, content: DockerSource.largestList)
        var hasEnded = false
        let call = SideCaller(to: endpoint).start(request, limits: limits) { [weak self] result in
            hasEnded = true
            guard let self else { return }
            question = nil
            switch result {
            case .failure(let error): fail(error.reason)
            case .success(let response) where response.status.code != 200 && isAbsent != nil: isAbsent?()
            case .success(let response) where response.status.code != 200:
                fail("it answered \(response.status.code)")
            case .success(let response):
                do throws(JsonFault) {
                    done(try JsonValue(response.content.bytes ?? [], rules: .lenient))
                } catch {
                    fail("its answer is not JSON: \(error)")
                }
            }
        }
        if !hasEnded { question = call }
    }

    /// Asks for the details that the list lacks, of one container after the other: ports that are exposed but not published, and health.
    private func inspect(_ containers: [DockerContainer]) {
        let open = containers.first { container in
            guard container.isRunning, container.health == .unchecked,
                !definition.onlyLabelled || container.labels.contains(where: { $0.key.hasPrefix("httpware.") })
            else { return false }
            guard let known = details[container.id] else { return true }
            return known.health != nil && known.list != lists
        }
        guard let open, let request = request("/containers/\(open.id)/json") else { return finish(containers) }
        let list = lists
        get(request) { [weak self] json in
            guard let self else { return }
            details[open.id] = Details(
                ports: DockerSource.exposedPorts(json),
                health: DockerContainer.health(named: json["State"]?["Health"]?["Status"]?.string), list: list)
            inspect(containers)
        } unless: { [weak self] in
            guard let self else { return }
            // It has gone meanwhile, or the engine says nothing about it: then the list has to be enough.
            details[open.id] = Details(ports: [], health: nil, list: list)
            inspect(containers)
        }
    }

    /// The TCP ports of `Config.ExposedPorts`, whose names are `3000/tcp`.
    private static func exposedPorts(_ json: JsonValue) -> [UInt16] {
        let names = json["Config"]?["ExposedPorts"]?.members?.map(\.name) ?? []
        return names.prefix(100).compactMap { name in
            let parts = name.split(separator: "/")
            guard parts.count == 1 || parts.count == 2 && parts[1] == "tcp" else { return nil }
            return parts.first.flatMap { UInt16($0) }
        }.sorted()
    }

    private func finish(_ containers: [DockerContainer]) {
        failures = 0
        let now = loop.now
        let ids = Set(containers.filter(\.isRunning).map(\.id))
        details = details.filter { ids.contains($0.key) }
        read = read.filter { ids.contains($0.key) }
        stopping = stopping.filter { ids.contains($0.key) && $0.value > now }
        let instances = containers.map { container -> FoundInstance in
            var container = container
            if let known = details[container.id] {
                if container.ports.isEmpty || known.ports.count > 1 { container.ports = known.ports }
                container.health = known.health ?? container.health
            }
            var known = read[container.id]
            if known == nil || known?.made != container.made {
                known = container.labelled
                read[container.id] = known
            }
            return container.instance(
                network: definition.network, onlyLabelled: definition.onlyLabelled,
                leaving: stopping[container.id] != nil, reading: known)
        }
        found?(instances)
        let asksForHealth = details.values.contains { $0.health != nil }
        if isAskedAgain {
            askSoon()
        } else {
            let stops = stopping.values.map { $0 - now }.min() ?? DockerSource.interval
            let asks = asksForHealth ? DockerSource.healthInterval : DockerSource.interval
            later(max(DockerSource.shortest, min(asks, stops)))
        }
    }

    private func fail(_ reason: String) {
        guard found != nil else { return }
        failures += 1
        failed?("\(definition.socket.optionText): \(reason)")
        timer?.cancel()
        timer = nil
        later(DockerSource.backOff(failures))
    }
}
