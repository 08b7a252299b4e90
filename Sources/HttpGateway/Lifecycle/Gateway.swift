// One file, because start, reload, upgrade and stop share the state of the control loop, and must work in any combination.

public import GatewayConfig
import Glibc
import Capturing
import DiskCapturing
import HttpCaching
public import HttpWare
import Synchronization
import Wares

/// A running gateway: its loops, listeners and services.
///
/// Unchecked: `status`, `reload` and `stop` may be used from any thread. Everything else is used on the control loop
/// only, or before it runs.
public final class Gateway: @unchecked Sendable {
    /// The version of the program.
    public static let version = ProgramVersion.text

    /// The state that other threads may read.
    public let status: GatewayStatus

    private let log: GatewayLog
    private var source: ConfigurationSource?
    private var workers: [Worker] = []
    /// The loop of the thread that called `run()`, for signals, reloads and the end.
    private let control: EventLoop
    private let signals: Signals
    private let inbox: SignalInbox
    private var running: RunningConfiguration
    private var sockets: ListenerSockets
    private var admin: AdminServer?
    /// Obtains the certificates of listeners with `acme`.
    private let certificates = ListenerCertificates()
    private var isDraining = false
    private var inheritance: Inheritance
    /// The new process that is going to replace this one, until it serves.
    private var successor: Successor?
    /// Whether the new process serves. It then owns the sockets, and the files of Unix sockets.
    private var isSucceeded = false
    /// Whether an upgrade was requested during a reload.
    private var isSuccessionWanted = false
    /// Whether a reload was refused because of an upgrade. It is made up for if the new process does not serve.
    private var isReloadOwed = false
    private var watcher: FileWatcher?
    /// Whether the reload in progress was requested because files changed.
    private var isWatched = false
    /// The callbacks for the outcome of the reload in progress; `nil` if there is none.
    private var reloading: [@Sendable (ReloadOutcome) -> Void]?
    /// Looks for services; `nil` if the configuration looks for none.
    private var discovery: Discovery?
    /// The programs that were found, and not used yet: during a reload, or because files that options name had errors.
    private var foundMeanwhile: [FoundInstance]?
    /// Counts the keepers of found services, so that a former one is not heard any more.
    private var discoveries = 0
    /// The pause before found services are tried again.
    private static let foundAgain = Duration.seconds(2)
    /// Makes configurations with found services.
    private let reader: ConfigurationReader?
    /// The callbacks of reloads requested meanwhile. Their files may have been written after the current reload read them.
    private var waiting: [@Sendable (ReloadOutcome) -> Void] = []

    /// Numbers the exchanges in records and captures.
    private let numbers = ExchangeNumbers()
    /// The records of the last exchanges; `nil` if exchanges are not observed. Changed on the control loop only.
    public private(set) var records: RequestRecords?
    private let observes: Bool
    /// The folder from which the inspector page is read during its development; `nil` for the page in the program.
    private let pageFolder: String?
    /// The captures of exchanges; `nil` if exchanges are not captured. Changed on the control loop only.
    private var captures: CaptureStore?
    /// The temporary rules.
    private let rules: GatewayRules
    private let ruled = RuledLoops()

    /// Binds every listener and starts to serve on that number of loops. If a listener cannot be bound, throws before anything is
    /// served. Without a source, reloads fail. `watches` reloads when the files change. `observes` keeps records of exchanges, as
    /// an admin listener does. `pageFolder` is the folder from which the inspector page is read. Without `takesSignals`, the
    /// caller handles signals. Without a reader, nothing is looked for after the start. Inherited sockets are used in place of binding; a socket of a service manager that matches no
    /// listener is an error.
    public init(
        _ configuration: GatewayConfiguration, loops: Int, log: GatewayLog, source: ConfigurationSource? = nil,
        reader: ConfigurationReader? = nil, watches: Bool = false, observes: Bool = false, takesSignals: Bool = true,
        pageFolder: String? = nil,
        inheriting inheritance: Inheritance = .none
    ) throws {
        self.inheritance = inheritance
        self.pageFolder = pageFolder
        sockets = ListenerSockets(inherited: inheritance.sockets)
        self.log = log
        self.source = source
        self.reader = reader ?? source?.reader
        self.observes = observes
        status = GatewayStatus(configuration, at: SystemLoopClock().wallNow())
        control = try EventLoop(name: "control")
        // Before anything listens, so that a signal from now on waits for `run()`.
        let inbox = SignalInbox()
        self.inbox = inbox
        signals = try Signals(takesSignals ? [SIGTERM, SIGINT, SIGHUP, SIGUSR2] : [], on: control) {
            inbox.received?($0)
        }
        running = RunningConfiguration(configuration, loops: loops)
        rules = GatewayRules { [ruled] in await ruled.use($0, $1) }
        if let source, watches { try watch(source) }
        keepRecords(for: configuration, loops: loops)
        try refuseUnfitting(configuration)
        let keepers = try certificates.prepare(configuration.listeners)
        try sockets.requireFree(configuration.listeners)
        let bound = try sockets.rebound(to: configuration.listeners, loops: loops)
        Socket.raiseDescriptorLimit()
        Socket.reserveDescriptors()
        do {
            workers = try (0..<loops).map { try Worker(name: "loop \($0)", log: log) }
            ruled.set(workers)
            admin = try configuration.admin.map {
                try AdminServer($0, subject: subject, log: log, inherited: sockets.inherited)
            }
        } catch {
            bound.closeUntaken()
            throw error
        }
        noteAdmin()
        for worker in workers {
            worker.loop.execute { [log] in
                do {
                    try worker.prepare()
                } catch {
                    log.write(.critical, "the resolver cannot start: \(error)")
                    exit(3)
                }
            }
        }
        lookForServices()
        (configuration.placeholders as? PlaceholderRun)?.report { [log] in log.write(.warning, $0) }
        let left = Countdown(loops)
        certificates.use(keepers, for: configuration.listeners, on: workers[0].loop)
        swap(to: running, bound) { [control] in control.execute { if left.countDown() { self.serves() } } }
        sockets.closeInherited()
    }

    /// Called when every loop serves.
    private func serves() {
        status.change { $0.isServing = true }
        if inheritance.predecessor == nil { tellManager("READY=1", "STATUS=serving") }
        inheritance.tellPredecessor()
        watchLoops()
    }

    /// Also accepts connections on these listening descriptors, for the gateway's only listener. `enter` passes each accepted connection to one
    /// loop's part of the listener, on the loop's thread. The gateway owns the descriptors from now on. Throws if the process has no descriptors
    /// left.
    public func accept(
        on descriptors: [Int32], _ enter: @escaping @Sendable (LoopListener, Int32, SocketAddress) -> Void
    ) throws {
        for (number, worker) in workers.enumerated() {
            for descriptor in descriptors {
                let own = number == 0 ? descriptor : try Socket.copy(descriptor)
                worker.loop.execute { worker.accept(on: own, enter) }
            }
        }
    }

    /// Keeps an object for the first loop until the gateway ends. `make` is called on the loop's thread. `number` is the object's own.
    public func keep(_ number: Int, _ make: @escaping @Sendable (EventLoop) -> any LoopGuest) {
        let worker = workers[0]
        worker.loop.execute { worker.keep(number, make) }
    }

    /// Serves until SIGTERM or SIGINT: the first one drains, the second one stops. SIGHUP opens log files again and reloads.
    /// SIGUSR2 starts the program again, passes the listening sockets to the new process, and drains when that serves.
    public func run() {
        inbox.received = { [self] signal in
            if signal == SIGHUP {
                log.write(.info, "reopening log files")
                LogWriter.shared.reopen()
                if source != nil { startReload { _ in } }
            } else if signal == SIGUSR2 {
                startSuccessor()
            } else if isDraining {
                log.write(.info, "stopping")
                control.stop()
            } else {
                log.write(.info, "draining")
                giveSuccessorUp()
                tellManager("STOPPING=1", "STATUS=draining")
                drain()
            }
        }
        control.run()
        inbox.received = nil
        signals.close()
        certificates.stop()
        discovery?.stop()
        watcher?.close()
        for worker in workers {
            worker.loop.execute {
                worker.close()
                worker.loop.stop()
            }
        }
        for worker in workers { worker.loop.join() }
        admin?.close()
        for store in running.configuration.stores { store.store.close() }
        captures?.archive?.close()
        if !isSucceeded { for path in sockets.paths { unlink(path) } }
        // A gateway that ends with its command was not stopped by a signal, so nothing is logged.
        if isDraining { log.write(.info, "stopped") }
        log.flush()
    }

    /// Ends `run()` as SIGTERM does, after the requests in progress; with `now`, without them. May be called again. Safe from any thread.
    public func end(now: Bool = false) {
        control.execute {
            if !self.isDraining { self.inbox.received?(SIGTERM) }
            if now { self.inbox.received?(SIGTERM) }
        }
    }

    /// Ends `run()` at once. Safe from any thread.
    public func stop() { control.stop() }

    private func drain(idleFor idle: Duration = LoopListener.usualIdle) {
        isDraining = true
        certificates.stop()
        discovery?.stop()
        status.change { $0.isDraining = true }
        // Used only on the control loop.
        let left = Countdown(workers.count)
        let control = self.control
        for worker in workers {
            worker.loop.execute {
                worker.drain(idleFor: idle) { control.execute { if left.countDown() { self.finish() } } }
            }
        }
    }

    /// The maximum time for wares to finish their work.
    private static let longestFinish = Duration.seconds(5)

    /// Called after the last exchange: lets wares finish their work, such as sending spans to a collector, and then stops.
    private func finish() {
        let finishers = running.configuration.partsByLabel { ($0 as? any FinishingWare)?.finisher }.flatMap(\.parts)
        guard !finishers.isEmpty else { return control.stop() }
        control.schedule(after: Gateway.longestFinish) { [log, control] in
            log.write(.warning, "the last work of wares was stopped after \(Gateway.longestFinish.optionText)")
            control.stop()
        }
        // On a loop that has a transport, and all at once, because each may wait for its own peer.
        let loop = workers[0].loop
        Task(executorPreference: loop) { [control] in
            await withTaskGroup { group in
                for finisher in finishers { group.addTask(executorPreference: loop) { await finisher.finish() } }
            }
            control.stop()
        }
    }

    private func watch(_ source: ConfigurationSource) throws {
        let watcher = try FileWatcher(
            loop: control,
            changed: { [unowned self] in
                log.write(.info, "files changed, reading them again")
                startReload(isWatched: true) { _ in }
            }, reports: { [log] in log.write(.warning, $0) })
        watcher.watch(paths: source.paths, patterns: source.patterns, readAfter: source.look)
        self.watcher = watcher
    }

    // MARK: Reload

    /// Reads the configuration again and uses it if it is valid. Safe from any thread. `done` is called once, on the control
    /// loop, when every loop uses it or when it was refused. It is not called if the gateway ends first.
    public func reload(_ done: @escaping @Sendable (ReloadOutcome) -> Void) {
        control.execute { self.startReload(done) }
    }

    private func startReload(isWatched: Bool = false, _ done: @escaping @Sendable (ReloadOutcome) -> Void) {
        if reloading != nil { return waiting.append(done) }
        self.isWatched = isWatched
        guard let source else { return done(.failed("the configuration was not read from a file")) }
        reloading = [done]
        tellManager("RELOADING=1", "MONOTONIC_USEC=\(SystemLoopClock().now().nanoseconds / 1000)")
        if let successor {
            isReloadOwed = true
            let reason = "process \(successor.pid) is starting as the new version, and reads the files itself"
            return endReload(.failed(reason))
        }
        let before = watcher?.look() ?? FileLook()
        // Files may be slow, so they are not read on a loop.
        Task.detached { [running, control, loops = workers.count] in
            let result = source.read(keeping: running.configuration)
            let next = result.configuration.map { RunningConfiguration($0, loops: loops, replacing: running) }
            control.execute {
                self.watcher?.watch(paths: result.paths, patterns: result.patterns, readAfter: before)
                self.finishReload(result, next)
            }
        }
    }

    private func finishReload(_ result: ConfigurationReader.Result, _ next: RunningConfiguration?) {
        guard let next else {
            // A file that is still being written is not an error: another change follows.
            if isWatched, watcher?.isBehind == true { return leaveReload(.refused(result.errors)) }
            return endReload(.refused(result.errors))
        }
        guard !isDraining else { return endReload(.failed("the gateway is draining")) }
        let bound: ListenerSockets
        let keepers: ListenerCertificates.Keepers
        let former = admin
        do {
            keepers = try certificates.prepare(next.configuration.listeners)
            try rebindAdmin(next.configuration.admin)
            do {
                bound = try sockets.rebound(to: next.configuration.listeners, loops: workers.count)
            } catch {
                if let admin, admin !== former { admin.close() }
                admin = former
                throw error
            }
        } catch {
            return endReload(.failed("\(error)"))
        }
        keepRecords(for: next.configuration, loops: workers.count)
        if let former, admin !== former { former.leave() }
        if let definition = next.configuration.admin { admin?.use(definition, subject: subject) }
        noteAdmin()
        if next.configuration.log != running.configuration.log { log.use(next.configuration.log) }
        // No client can reach these any more, so their queues become empty.
        for path in sockets.paths.subtracting(bound.paths) { unlink(path) }
        let outcome = ReloadOutcome.done(
            changes: next.changes.count, warnings: result.errors.filter { $0.severity == .warning })
        let left = Countdown(workers.count)
        let control = self.control
        certificates.use(keepers, for: next.configuration.listeners, on: workers[0].loop)
        swap(to: next, bound) { control.execute { if left.countDown() { self.endReload(outcome) } } }
        lookForServices()
    }

    // MARK: Found services

    /// Looks for services as the running configuration says, from now on.
    private func lookForServices() {
        let definition = running.configuration.discover
        guard discovery?.definition != definition else { return }
        discovery?.stop()
        discoveries += 1
        let number = discoveries
        discovery = definition.map { definition in
            Discovery(
                definition, loop: workers[0].loop, knowing: running.configuration.found.instances, log: log
            ) { [weak self, control] instances in
                control.execute { [weak self] in
                    if self?.discoveries == number { self?.found(instances) }
                }
            }
        }
        discovery?.start()
        let discovery = self.discovery
        status.change { $0.discovery = discovery }
    }

    /// Uses what the sources of services found. If only the endpoints of known services changed, nothing else is touched.
    private func found(_ instances: [FoundInstance]) {
        guard !isDraining else { return }
        guard reloading == nil else {
            foundMeanwhile = instances
            return
        }
        foundMeanwhile = nil
        if let updated = running.configuration.updated(finding: instances) {
            tellFound(updated.found, after: running.configuration.found)
            running.use(found: updated)
            return status.change { $0.configuration = updated }
        }
        guard let reader else { return }
        reloading = []
        Task.detached { [running, control, loops = workers.count] in
            let result = reader.read(again: running.configuration, finding: instances)
            let next = result.configuration.map { RunningConfiguration($0, loops: loops, replacing: running) }
            control.execute { self.finishFound(result, next, instances) }
        }
    }

    private func finishFound(
        _ result: ConfigurationReader.Result, _ next: RunningConfiguration?, _ instances: [FoundInstance]
    ) {
        guard !isDraining else { return endFound() }
        do {
            guard let next else {
                log.write(result.errors)
                throw FoundError(description: "files that options name have errors")
            }
            let keepers = try certificates.prepare(next.configuration.listeners)
            let bound = try sockets.rebound(to: next.configuration.listeners, loops: workers.count)
            tellFound(next.configuration.found, after: running.configuration.found)
            if !next.changes.isEmpty { log.write(.info, "discover: \(next.summary)") }
            let left = Countdown(workers.count)
            let control = self.control
            certificates.use(keepers, for: next.configuration.listeners, on: workers[0].loop)
            swap(to: next, bound) { control.execute { if left.countDown() { self.endFound() } } }
            status.change { $0.configuration = next.configuration }
        } catch {
            log.write(
                .error, isCertain: true,
                "discover: the services that were found cannot be used yet: \(error); what was found before stays")
            let number = discoveries
            control.schedule(after: Gateway.foundAgain) { [weak self] in
                guard let self, discoveries == number, foundMeanwhile == nil else { return }
                found(instances)
            }
            endFound()
        }
    }

    /// Why found services cannot be used.
    private struct FoundError: Error, CustomStringConvertible {
        let description: String
    }

    private func endFound() {
        reloading = nil
        if isSuccessionWanted { startSuccessor() }
        reloadWaiting()
        if reloading == nil, let instances = foundMeanwhile { found(instances) }
    }

    private static let mostToldProblems = 20

    /// Logs what is new: endpoints that came and went, and mistakes.
    private func tellFound(_ found: FoundServices, after former: FoundServices) {
        for name in Set(found.addresses.keys).union(former.addresses.keys).sorted() {
            let now = Set(found.addresses[name] ?? [])
            let before = Set(former.addresses[name] ?? [])
            let came = now.subtracting(before).map { "+\($0)" }.sorted()
            let went = before.subtracting(now).map { "-\($0)" }.sorted()
            guard !came.isEmpty || !went.isEmpty else { continue }
            log.write(.info, "discover: \(name): \((came + went).joined(separator: " ")), \(now.count) in use")
        }
        let known = Set(former.problems)
        let new = found.problems.filter { !known.contains($0) }
        for problem in new.prefix(Gateway.mostToldProblems) {
            log.write(problem.leavesOut ? .warning : .notice, "discover: \(problem.place): \(problem.message)")
        }
        if new.count > Gateway.mostToldProblems {
            log.write(
                .warning, "discover: \(new.count - Gateway.mostToldProblems) more mistakes; /v1/services has them")
        }
    }

    private func endReload(_ outcome: ReloadOutcome) {
        tell(outcome)
        let configuration = running.configuration
        status.change { status in
            status.lastReload = .init(time: SystemLoopClock().wallNow(), outcome: outcome)
            status.reloads += 1
            if outcome.isSuccess { status.configuration = configuration } else { status.failedReloads += 1 }
        }
        leaveReload(outcome)
    }

    private func leaveReload(_ outcome: ReloadOutcome) {
        let told = reloading ?? []
        reloading = nil
        tellManager("READY=1", outcome.isSuccess ? "STATUS=serving" : "STATUS=serving; the last reload failed")
        for done in told { done(outcome) }
        if isSuccessionWanted { startSuccessor() }
        reloadWaiting()
        if reloading == nil, let instances = foundMeanwhile { found(instances) }
    }

    private func reloadWaiting() {
        let waited = waiting
        waiting = []
        for done in waited { startReload(done) }
    }

    private func tell(_ outcome: ReloadOutcome) {
        switch outcome {
        case .done(let changes, let warnings):
            log.write(warnings)
            log.write(.notice, isCertain: true, "reloaded: " + (changes == 0 ? "no change" : running.summary))
        case .refused(let errors):
            log.write(errors)
            log.write(
                .error, isCertain: true, "not reloaded: the configuration has errors; the previous one stays in force")
        case .failed(let reason):
            log.write(.error, isCertain: true, "not reloaded: \(reason); the previous configuration stays in force")
        }
    }

    // MARK: Service manager and successor

    /// A socket without an acceptor would make its clients wait forever. A socket of the previous gateway that is no
    /// longer needed may be closed.
    private func refuseUnfitting(_ configuration: GatewayConfiguration) throws {
        let left = sockets.unfitting(configuration.listeners).filter { socket in
            socket.isManagers
                && configuration.admin.map { !socket.fits($0.bind, name: InheritedSocket.adminName) } ?? true
        }
        guard inheritance.predecessor == nil, let first = left.first else { return }
        let shown = left.map { $0.name.isEmpty ? "\($0.address)" : "\($0.address) (\($0.name))" }
        throw InheritanceError(
            description:
                "no listener is bound to these passed sockets: \(shown.joined(separator: ", ")); write a listener with bind: \"\(first.address)\", or another ListenStream= in the socket unit"
        )
    }

    private func tellManager(_ assignments: String...) {
        guard let error = inheritance.manager?.tell(assignments) else { return }
        log.write(.warning, "\(assignments[0]) cannot be sent to the service manager: \(error)")
    }

    /// Notifies the service manager's watchdog at the required interval, if every loop still works.
    private func watchLoops() {
        guard let manager = inheritance.manager, let limit = manager.watchdog, !isSucceeded else { return }
        let left = Countdown(workers.count)
        let control = self.control
        for worker in workers {
            worker.loop.execute { control.execute { if left.countDown() { manager.tell(["WATCHDOG=1"]) } } }
        }
        control.schedule(after: limit / 2) { [unowned self] in watchLoops() }
    }

    private func startSuccessor() {
        isSuccessionWanted = reloading != nil
        guard !isSuccessionWanted, successor == nil, !isDraining else { return }
        var heritage = sockets.heritage
        if let admin, admin.ownsFile {
            heritage.append(
                InheritedSocket(
                    descriptor: admin.descriptor, address: admin.address, name: InheritedSocket.adminName,
                    isManagers: false))
        }
        do {
            if let reason = reasonToStay { throw InheritanceError(description: reason) }
            successor = try Successor(of: inheritance, sockets: heritage, loop: control) {
                [unowned self] failure in
                if let failure { stay(failure) } else { handOver() }
            }
            log.write(.info, "upgrade: started the program again, as process \(successor?.pid ?? 0)")
        } catch {
            stay("\(error)")
        }
    }

    /// Why another process cannot replace this one; `nil` if it can.
    private var reasonToStay: String? {
        if inheritance.command.isEmpty || source == nil {
            return "it was not started by \(ProgramName.text) run with a file"
        }
        // If process 1 ends, all processes of the container end.
        return getpid() == 1 ? "it is process 1; start another container in its place" : nil
    }

    private func stay(_ reason: String) {
        successor = nil
        log.write(.error, "upgrade abandoned: \(reason); this process keeps running")
        guard isReloadOwed else { return }
        isReloadOwed = false
        startReload { _ in }
    }

    private func giveSuccessorUp() {
        guard let successor else { return }
        self.successor = nil
        successor.giveUp()
        log.write(.notice, "upgrade abandoned: process \(successor.pid) was not ready yet, and has been ended")
    }

    private func handOver() {
        guard let pid = successor?.pid else { return }
        successor = nil
        isSucceeded = true
        log.write(.notice, "upgrade: process \(pid) takes over; draining")
        tellManager("MAINPID=\(pid)", "READY=1", "STATUS=serving")
        admin?.leave(handsOver: true)
        admin = nil
        // Without hurry: connections close after their next response, so that clients do not notice.
        drain(idleFor: .seconds(10))
    }

    // MARK: The admin listener

    /// The data that the admin listener shows, and the actions that it may request.
    private var subject: AdminSubject {
        let worker = workers[0]
        return AdminSubject(
            status: status, census: Census(workers), loop: worker.loop, records: records, captures: captures,
            source: source, pageFolder: pageFolder,
            replay: { order, name throws(GatewayError) in
                try await worker.loop.submit { () throws(GatewayError) in try worker.replay(order, listener: name) }
            },
            rules: rules, certificates: certificates, stop: { [weak self] in self?.end(now: $0) }
        ) {
            [weak self] done in
            guard let self else { return done(.failed("the gateway has ended")) }
            self.reload(done)
        }
    }

    /// Opens the admin listener at its new address, if that changed. The former one is not closed here.
    private func rebindAdmin(_ definition: AdminDefinition?) throws {
        guard definition?.bind != running.configuration.admin?.bind else { return }
        admin = try definition.map { try AdminServer($0, subject: subject, log: log) }
    }

    /// Keeps records and captures while they may be read.
    private func keepRecords(for configuration: GatewayConfiguration, loops: Int) {
        if observes || configuration.admin != nil {
            if records == nil { records = RequestRecords(loops: loops, numbers: numbers) }
        } else {
            records = nil
        }
        // Existing captures are kept as long as their settings allow.
        if configuration.admin?.capture != captures?.settings {
            let settings = configuration.admin?.capture
            var archive = captures?.archive
            if settings?.disk != captures?.settings.disk {
                archive?.close()
                archive = settings?.disk.map { CaptureFolder($0) }
            }
            captures = settings.map { CaptureStore($0, archive: archive, numbers: numbers) }
        }
    }

    private func noteAdmin() {
        let address = admin?.address
        status.change { $0.adminAddress = address }
    }

    /// Passes each loop its listeners and what they need. `done` is called once on each loop when it serves them.
    private func swap(
        to next: RunningConfiguration, _ bound: ListenerSockets, done: @escaping @Sendable () -> Void = {}
    ) {
        for (_, starters) in next.configuration.partsByLabel({ ($0 as? any StartingWare)?.starter }) {
            for starter in starters { starter.start() }
        }
        for (index, worker) in workers.enumerated() {
            let listeners = zip(bound.bound, zip(next.routers[index], next.intercepts)).map { socket, parts in
                Worker.Listener(
                    socket: socket.number, descriptor: socket.isTaken ? nil : socket.descriptors[index],
                    definition: socket.listener,
                    router: certificates.router(parts.0, for: socket.listener, among: next.configuration.listeners),
                    intercept: parts.1,
                    mostConnections: max(1, socket.listener.limits.connections / workers.count))
            }
            let services = Array(next.services.services.values)
            let records = records?.rings[index]
            let isCounted = next.configuration.admin != nil
            let placeholders = next.configuration.placeholders
            let captures = self.captures
            let names = next.configuration.resolver
            worker.loop.execute {
                worker.serve(
                    listeners, services: services, watches: index == 0, records: records, isCounted: isCounted,
                    placeholders: placeholders, captures: captures, names: names)
                done()
            }
        }
        sockets = bound
        sockets.markTaken()
        running = next
        GatewayStores.refreshNames(of: next.configuration)
        let addresses = bound.bound.map {
            GatewayStatus.Address(
                name: $0.listener.name, mode: $0.listener.mode, isSecure: $0.listener.tls != nil, address: $0.address)
        }
        status.change {
            $0.addresses = addresses
            $0.services = next.services.services
        }
    }
}

/// The receiver of signals, set when `run()` has begun. Used on the control loop only.
private final class SignalInbox {
    var received: ((Int32) -> Void)?
}

/// The loops that get the rules.
private final class RuledLoops: Sendable {
    private let workers = Mutex<[Worker]>([])

    func set(_ workers: [Worker]) { self.workers.withLock { $0 = workers } }

    /// Returns when every loop has the rules.
    func use(_ rules: [GatewayRules.Active], _ maintenance: Maintenance?) async {
        for worker in workers.withLock({ $0 }) { await worker.loop.submit { worker.use(rules, maintenance) } }
    }
}

/// Counts down to zero.
///
/// Unchecked: used on the control loop only.
private final class Countdown: @unchecked Sendable {
    private var left: Int

    init(_ count: Int) { left = count }

    /// Counts one. Returns whether it was the last.
    func countDown() -> Bool {
        left -= 1
        return left == 0
    }
}
