import HttpWare

/// Finds the servers of a store: asks sentinels for the master, or nodes for the slots of their cluster, one after the other.
///
/// It searches every two seconds, and soon after a server failed: at most ten times a second, and less often while it finds
/// nothing. The number of questions, the time for answers and their size are limited as for any command. Used on its loop's
/// thread only.
final class RedisScout: LoopTimerHandler {
    /// The pause between two regular searches.
    static let interval = Duration.seconds(2)
    /// The minimum pause between two searches.
    static let soonest = Duration.milliseconds(100)
    /// The maximum pause between two searches while they find nothing.
    static let longest = Duration.seconds(1)
    /// The time limit of one server's answer.
    static let patience = Duration.milliseconds(500)
    /// The maximum number of masters that are asked for the slots, in addition to the configured nodes.
    private static let mostMasters = 16

    private let definition: RedisDefinition
    private let directory: RedisDirectory
    private let health: RedisHealth
    private let loop: EventLoop
    private weak var resolver: Resolver?
    private let timer: LoopTimer
    /// The links to sentinels, which need no password, and to servers, which may need one.
    private var sentinels: [RedisUrl.Place: RedisLink] = [:]
    private var servers: [RedisUrl.Place: RedisLink] = [:]
    private let quiet: RedisHealth
    private var backoff = RedisBackoff()
    private var isLooking = false
    /// Whether a server failed since the search began.
    private var isUrgent = false
    private var lastEnd: LoopInstant?
    /// The index of the address that is asked first.
    private var first = 0
    private let whenFound: (RedisMap) -> Void

    /// Starts at once. `whenFound` is called with each map that differs from the previous one.
    init(
        _ definition: RedisDefinition, directory: RedisDirectory, health: RedisHealth, loop: EventLoop,
        resolver: Resolver?, whenFound: @escaping (RedisMap) -> Void
    ) {
        self.definition = definition
        self.directory = directory
        self.health = health
        self.loop = loop
        self.resolver = resolver
        self.whenFound = whenFound
        quiet = RedisHealth(definition, isQuiet: true)
        timer = LoopTimer(loop: loop)
        timer.handler = self
        begin()
    }

    /// Searches again soon, because a server failed.
    func look() {
        if isLooking {
            isUrgent = true
        } else if backoff.failures == 0 {
            // While nothing is found, the next search is scheduled already.
            timer.set(due: (lastEnd ?? loop.now) + RedisScout.soonest)
        }
    }

    func timerFired(_ timer: LoopTimer) { begin() }

    func close() {
        timer.cancel()
        for link in sentinels.values { link.close() }
        for link in servers.values { link.close() }
        sentinels = [:]
        servers = [:]
    }

    // MARK: A search

    private func begin() {
        isLooking = true
        isUrgent = false
        directory.searchBegins()
        var places: [RedisUrl.Place] = []
        switch definition.servers {
        case .one: return
        case .sentinels(let addresses, _): places = addresses.map(\.place)
        case .nodes(let addresses):
            places = (directory.map?.masters.prefix(RedisScout.mostMasters).map(\.place) ?? []) + addresses.map(\.place)
        }
        guard !places.isEmpty else { return }
        let start = first % places.count
        ask((places[start...] + places[..<start])[...], "no server answers")
    }

    private func ask(_ places: ArraySlice<RedisUrl.Place>, _ reason: String) {
        guard let place = places.first else { return ended(nil, reason) }
        let rest = places.dropFirst()
        switch definition.servers {
        case .one: return
        case .sentinels(_, let master):
            let question: [RedisArgument] = ["SENTINEL", "get-master-addr-by-name", RedisArgument(master)]
            send(question, sentinel(place)) { [weak self] result in
                switch result {
                case .success(let reply): self?.named(reply, by: place, master, rest)
                case .failure(let failure): self?.failed(place, failure.reason, rest)
                }
            }
        case .nodes:
            send(["CLUSTER", "SLOTS"], server(place)) { [weak self] result in
                switch result {
                case .success(let reply):
                    guard let map = RedisMap(clusterSlots: reply, from: place) else {
                        self?.failed(place, "sends no valid map of the slots", rest)
                        return
                    }
                    self?.ended(map, "")
                case .failure(let failure): self?.failed(place, failure.reason, rest)
                }
            }
        }
    }

    /// Handles the answer of a sentinel. The named server itself must confirm that it is a master.
    private func named(
        _ reply: RedisReply, by sentinel: RedisUrl.Place, _ master: String, _ rest: ArraySlice<RedisUrl.Place>
    ) {
        guard let place = RedisUrl.Place(masterAddress: reply) else {
            let text = reply == .null ? "knows no master \(master.quotedForErrors)" : "names no valid address"
            return failed(sentinel, text, rest)
        }
        send(["ROLE"], server(place)) { [weak self] result in
            switch result {
            case .success(let role):
                guard let replicas = role.replicasOfMaster else {
                    self?.failed(sentinel, "names \(place), which is not a master", rest)
                    return
                }
                self?.ended(RedisMap(place, replicas: replicas), "")
            case .failure(let failure):
                self?.failed(sentinel, "names \(place): \(failure.reason)", rest)
            }
        }
    }

    private func failed(_ place: RedisUrl.Place, _ reason: String, _ rest: ArraySlice<RedisUrl.Place>) {
        first &+= 1
        ask(rest, "\(place) \(reason)")
    }

    private func ended(_ map: RedisMap?, _ reason: String) {
        isLooking = false
        lastEnd = loop.now
        let isNew = directory.found(map)
        if let map {
            backoff.succeed()
            health.answered(at: nil)
            forget(but: map)
            if isNew {
                health.found(map)
                whenFound(map)
            }
            timer.set(after: isUrgent ? RedisScout.soonest : RedisScout.interval)
        } else {
            health.failed(reason, at: nil)
            timer.set(after: max(RedisScout.soonest, min(backoff.fail(), RedisScout.longest)))
        }
    }

    // MARK: Links

    private func send(_ command: [RedisArgument], _ link: RedisLink, completion: @escaping RedisLink.Completion) {
        guard let bytes = command.command else {
            return completion(.failure(RedisFailure(.unavailable, "there is no memory for a command")))
        }
        link.send(bytes, within: RedisScout.patience, completion: completion)
    }

    private func sentinel(_ place: RedisUrl.Place) -> RedisLink {
        if let known = sentinels[place] { return known }
        let link = makeLink(
            RedisTarget(place: place, security: definition.security(of: place), patience: RedisScout.patience))
        sentinels[place] = link
        return link
    }

    private func server(_ place: RedisUrl.Place) -> RedisLink {
        if let known = servers[place] { return known }
        var target = definition.target(place)
        // The role of the server is asked separately.
        target.mustBeMaster = false
        let link = makeLink(target)
        servers[place] = link
        return link
    }

    private func makeLink(_ target: RedisTarget) -> RedisLink {
        RedisLink(target, health: quiet, loop: loop, resolver: resolver)
    }

    /// Closes the links to servers that are no longer needed.
    private func forget(but map: RedisMap) {
        var kept = Set(map.masters.map(\.place))
        if case .nodes(let nodes) = definition.servers { kept.formUnion(nodes.map(\.place)) }
        for (place, link) in servers where !kept.contains(place) {
            link.close()
            servers[place] = nil
        }
    }
}
