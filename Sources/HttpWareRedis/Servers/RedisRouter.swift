import HttpWare

/// One loop's access to the servers of a store: a link to each, and the choice of the server for a command.
///
/// With a single server, there is only one link. With sentinels or a cluster, the directory's map says which server is
/// responsible. Commands that come before the first map wait for it. Redirections are followed. If a server refuses what the map
/// promises, a search starts. Used on its loop's thread only.
final class RedisRouter: LoopGuest {
    /// The maximum number of links to servers that are not on the map.
    static let mostStrangers = 16

    let loop: EventLoop
    private let definition: RedisDefinition
    private let health: RedisHealth
    private let directory: RedisDirectory
    private weak var resolver: Resolver?
    /// The only link, if there is a single server.
    private var only: RedisLink?
    private var links: [RedisUrl.Place: RedisLink] = [:]
    private var map: RedisMap?
    private var version = -1
    /// Commands that have not been sent to their final server, or that no server has executed yet.
    private var operations: [ObjectIdentifier: RedisOperation] = [:]
    private var isClosed = false
    /// Starts a search for the servers.
    private let search: () -> Void

    init(
        _ definition: RedisDefinition, directory: RedisDirectory, health: RedisHealth, loop: EventLoop,
        resolver: Resolver?, search: @escaping () -> Void
    ) {
        self.definition = definition
        self.directory = directory
        self.health = health
        self.loop = loop
        self.resolver = resolver
        self.search = search
        if case .one(let url) = definition.servers { only = makeLink(url.place) }
    }

    /// Whether a command that is sent now is expected to be answered: false shortly after all servers failed.
    var mayAnswer: Bool {
        if let only { return only.mayAnswer }
        guard !isClosed else { return false }
        guard let map = currentMap else { return !directory.hasFailed }
        return map.masters.contains { links[$0.place]?.mayAnswer ?? true }
    }

    /// Whether servers may redirect a command to another server.
    fileprivate var follows: Bool { definition.servers.isCluster }

    /// The silence of a server, as this loop knows it; `nil` without a link to the server.
    func silence(of place: RedisUrl.Place) -> RedisSilence? {
        if let only { return only.place == place ? only.silence : nil }
        return links[place]?.silence
    }

    /// Sends a command to the master of the slot, to any master if there is no slot, or to `place`. `completion` is called once,
    /// at once or within `patience`. Several commands that belong together have several answers.
    func send(
        _ command: [UInt8], answers: Int = 1, slot: UInt16?, at place: RedisUrl.Place? = nil, within patience: Duration,
        completion: @escaping RedisLink.Completion
    ) {
        if let only { return only.send(command, answers: answers, within: patience, completion: completion) }
        guard !isClosed else { return completion(.failure(RedisFailure(.unavailable, "the connection is closed"))) }
        guard operations.count < RedisLink.mostCommands else {
            return completion(.failure(RedisFailure(.unavailable, "too much waits for the server")))
        }
        let operation = RedisOperation(
            command, answers: answers, slot: slot, place: place, deadline: loop.now + patience, router: self, completion
        )
        operations[ObjectIdentifier(operation)] = operation
        operation.begin()
    }

    fileprivate func ended(_ operation: RedisOperation) { operations[ObjectIdentifier(operation)] = nil }

    /// The link for a command, or why there is none.
    fileprivate enum Way {
        case link(RedisLink)
        /// The first search has not ended yet.
        case mustWait
        case none(RedisFailure)
    }

    fileprivate func way(to slot: UInt16?, at place: RedisUrl.Place?) -> Way {
        guard !isClosed else { return .none(RedisFailure(.unavailable, "the connection is closed")) }
        if let place { return link(to: place) }
        guard let map = currentMap else {
            guard directory.hasFailed else { return .mustWait }
            health.change { $0.failures += 1 }
            return .none(RedisFailure(.unavailable, "no master is known"))
        }
        guard let master = map.master(of: slot) else {
            doubt()
            health.change { $0.failures += 1 }
            return .none(RedisFailure(.unavailable, "no node of the cluster has the slot of this key"))
        }
        return link(to: master.place)
    }

    /// Called when a server did not do what the map promises.
    fileprivate func doubt() { if directory.doubt() { search() } }

    private var currentMap: RedisMap? {
        let version = directory.version
        if version != self.version {
            self.version = version
            map = directory.map
            forgetStrangers()
            for link in links.values { link.tryAgain() }
        }
        return map
    }

    /// Closes the links to servers that are not on the map and from which no answer is outstanding.
    private func forgetStrangers() {
        for (place, link) in links where link.isIdle && map?.contains(place) != true {
            link.close()
            links[place] = nil
        }
    }

    private func link(to place: RedisUrl.Place) -> Way {
        if let known = links[place] { return .link(known) }
        let most = (map?.masters.count ?? 0) + RedisRouter.mostStrangers
        if links.count >= most { forgetStrangers() }
        guard links.count < most else {
            return .none(RedisFailure(.unavailable, "the nodes of the cluster name too many others"))
        }
        let link = makeLink(place)
        links[place] = link
        return .link(link)
    }

    private func makeLink(_ place: RedisUrl.Place) -> RedisLink {
        let silence = LoopTransport.current?.guests.values.lazy.compactMap { ($0 as? RedisRouter)?.silence(of: place) }
            .first
        return RedisLink(
            definition.target(place), health: health, loop: loop, resolver: resolver, silence: silence ?? RedisSilence()
        ) { [weak self] in
            if self?.only == nil { self?.doubt() }
        }
    }

    /// Closes all links, and fails all waiting commands.
    func close() {
        isClosed = true
        only?.close()
        for link in links.values { link.close() }
        links = [:]
        for operation in operations.values {
            operation.finish(.failure(RedisFailure(.unavailable, "the connection is closed")))
        }
        operations = [:]
    }
}

/// A command on its way to the right server, within one deadline. Its router retains it until it is answered.
private final class RedisOperation: LoopTimerHandler {
    /// The maximum number of times that a command is sent again.
    private static let mostHops = 5
    /// The pause before the next try, while slots move or there is no map.
    private static let pause = Duration.milliseconds(5)

    private let command: [UInt8]
    private let answers: Int
    private let slot: UInt16?
    private var place: RedisUrl.Place?
    private let deadline: LoopInstant
    private unowned let router: RedisRouter  // holds its operations, and ends them when it closes
    private var completion: RedisLink.Completion?
    private let timer: LoopTimer
    private var isAsking = false
    private var hops = 0
    private static let asking = (["ASKING"] as [RedisArgument]).command ?? []

    init(
        _ command: [UInt8], answers: Int, slot: UInt16?, place: RedisUrl.Place?, deadline: LoopInstant,
        router: RedisRouter, _ completion: @escaping RedisLink.Completion
    ) {
        self.command = command
        self.answers = answers
        self.slot = slot
        self.place = place
        self.deadline = deadline
        self.router = router
        self.completion = completion
        timer = LoopTimer(loop: router.loop)
        timer.handler = self
    }

    func begin() {
        let left = deadline - router.loop.now
        guard left > .zero else {
            return finish(.failure(RedisFailure(.unavailable, "no server did it in time")))
        }
        switch router.way(to: slot, at: place) {
        case .none(let failure): finish(.failure(failure))
        case .mustWait: timer.set(after: min(left, RedisOperation.pause))
        case .link(let link):
            let bytes = isAsking ? RedisOperation.asking + command : command
            let count = isAsking ? answers + 1 : answers
            link.send(bytes, answers: count, within: left) { [self] in answered($0) }
        }
    }

    private func answered(_ result: Result<RedisReply, RedisFailure>) {
        guard completion != nil else { return }
        switch result {
        case .success(let reply):
            guard isAsking, let replies = reply.array else { return finish(result) }
            let others = replies.dropFirst()
            return finish(.success(others.count == 1 ? others.last ?? reply : .array(Array(others))))
        case .failure(let failure):
            guard let redirect = failure.redirect, router.follows else { return finish(result) }
            hops += 1
            guard hops <= RedisOperation.mostHops else {
                return finish(.failure(RedisFailure(.refused, "the nodes send it from one to the other")))
            }
            isAsking = false
            switch redirect {
            case .moved(let place):
                router.doubt()
                // Without a place, the next map has to name it.
                self.place = place
                if place == nil { return timer.set(after: RedisOperation.pause) }
            case .asked(let place):
                self.place = place
                isAsking = true
            case .tryAgain: return timer.set(after: RedisOperation.pause)
            }
            begin()
        }
    }

    func timerFired(_ timer: LoopTimer) { begin() }

    func finish(_ result: Result<RedisReply, RedisFailure>) {
        guard let completion = completion.take() else { return }
        timer.cancel()
        router.ended(self)
        completion(result)
    }
}
