import GatewayConfig
import HttpWare
import Synchronization

/// Asks the sources of services for as long as a gateway runs, and remembers what they found while they cannot be asked.
///
/// Unchecked: `report` may be used from any thread. Everything else is used on its loop's thread only, through `start` and `stop`.
final class Discovery: @unchecked Sendable {
    /// The state of a source.
    struct SourceReport: Sendable {
        let name: String
        /// Why it cannot be asked; `nil` if it can.
        var failure: String?
        /// When it could last be asked, or since when it cannot.
        var since: WallTime
        /// The number of different answers.
        var updates = 0
        /// The number of failures.
        var failures = 0
    }

    /// The state of everything that is looked for.
    struct Report: Sendable {
        var sources: [SourceReport] = []
    }

    let definition: DiscoverDefinition
    private let loop: EventLoop
    private let log: GatewayLog?
    private let changed: @Sendable ([FoundInstance]) -> Void
    private let state = Mutex(Report())
    private var sources: [any ServiceSource] = []
    private var bySource: [[FoundInstance]] = []
    /// Services without an instance, and until when they are remembered.
    private var remembered: [String: (instance: FoundInstance, until: LoopInstant)] = [:]
    private var known: [FoundInstance]
    private var timer: LoopTimer?
    private var isStopped = false
    private var answered: Set<Int> = []
    private var isSure = false

    /// Makes a keeper that knows already what was found before. `changed` is called on the loop's thread with everything that is there, after
    /// each change.
    init(
        _ definition: DiscoverDefinition, loop: EventLoop, knowing known: [FoundInstance] = [], log: GatewayLog? = nil,
        changed: @escaping @Sendable ([FoundInstance]) -> Void
    ) {
        self.definition = definition
        self.loop = loop
        self.known = known
        self.log = log
        self.changed = changed
    }

    /// The state of the sources.
    var report: Report { state.withLock { $0 } }

    /// Begins. Usable from any thread.
    func start() { loop.execute { self.begin() } }

    /// Ends. Usable from any thread.
    func stop() {
        loop.execute {
            self.isStopped = true
            self.timer?.cancel()
            for source in self.sources { source.stop() }
            self.sources = []
        }
    }

    private func begin() {
        guard !isStopped else { return }
        let sources = ServiceSources.all(definition, on: loop)
        self.sources = sources
        // Until a source has answered, what was known of its kind holds.
        bySource = sources.map { source in known.filter { $0.source == source.name } }
        let now = loop.wallNow()
        state.withLock { state in
            state.sources = sources.map { SourceReport(name: $0.name, failure: "has not answered yet", since: now) }
        }
        for (index, source) in sources.enumerated() {
            source.start(
                found: { [weak self] in self?.take($0, index) }, failed: { [weak self] in self?.fail($0, index) })
        }
    }

    private func take(_ instances: [FoundInstance], _ index: Int) {
        let now = loop.wallNow()
        let isNew = bySource[index] != instances
        let back = state.withLock { state in
            let back = state.sources[index].failures > 0 && state.sources[index].failure != nil
            if state.sources[index].failure != nil || isNew { state.sources[index].since = now }
            state.sources[index].failure = nil
            if isNew { state.sources[index].updates += 1 }
            return back
        }
        if back { log?.write(.notice, "discover: \(sources[index].name) answers again") }
        bySource[index] = instances
        answered.insert(index)
        settle()
    }

    private func fail(_ reason: String, _ index: Int) {
        let now = loop.wallNow()
        let isNew = state.withLock { state in
            let isNew = state.sources[index].failure == nil || state.sources[index].failures == 0
            if isNew { state.sources[index].since = now }
            state.sources[index].failure = reason
            state.sources[index].failures += 1
            return isNew
        }
        if isNew {
            log?.write(
                .warning,
                "discover: \(sources[index].name) cannot be asked: \(reason); services that were found before stay")
        }
    }

    /// Passes on what is there, with the services whose programs have just gone.
    private func settle() {
        let there = bySource.flatMap { $0 }
        let now = loop.now
        let names = Set(there.filter { !$0.isIgnored && !$0.isOff }.map(\.service))
        // The leader of a service first: the others may have other labels.
        let gone = known.filter { $0.isService && !names.contains($0.service) }.sorted {
            ($0.made, $0.place) < ($1.made, $1.place)
        }
        for instance in gone {
            if remembered[instance.service] == nil {
                var last = instance
                last.use([], unless: "has gone")
                remembered[instance.service] = (last, now + definition.keep)
            }
        }
        remembered = remembered.filter { !names.contains($0.key) && $0.value.until > now }
        let kept = remembered.values.map(\.instance).sorted { ($0.made, $0.service) < ($1.made, $1.service) }
        let next = there + kept
        if let soonest = remembered.values.map(\.until).min() {
            timer?.cancel()
            timer = loop.schedule(after: max(.milliseconds(1), soonest - now)) { [weak self] in self?.settle() }
        }
        // The first whole answer is passed on even if it is as before, because it is the first that is sure.
        let isFirst = !isSure && answered.count == sources.count
        guard next != known || isFirst else { return }
        isSure = isSure || isFirst
        known = next
        changed(next)
    }
}
