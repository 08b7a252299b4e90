import HttpWare

/// The tasks of a client on its own thread: it searches for the servers, and listens to a channel on each master.
///
/// A message that is published on one node of a cluster arrives from all nodes. The watch still listens to each master, so that a
/// message that reached one node cannot be lost between two nodes. Used on its loop's thread only.
final class RedisWatch: LoopGuest {
    private let definition: RedisDefinition
    private let directory: RedisDirectory
    private let health: RedisHealth
    private let loop: EventLoop
    private weak var resolver: Resolver?
    private var scout: RedisScout?
    private var channel: String?
    private var tell: (@Sendable (RedisEvent) -> Void)?
    private var subscriptions: [RedisUrl.Place: RedisSubscription] = [:]
    private var standing: Set<RedisUrl.Place> = []
    /// Whether messages from every master are received.
    private var isOn = false

    init(
        _ definition: RedisDefinition, directory: RedisDirectory, health: RedisHealth, loop: EventLoop,
        resolver: Resolver?
    ) {
        self.definition = definition
        self.directory = directory
        self.health = health
        self.loop = loop
        self.resolver = resolver
        guard !definition.servers.isFixed else { return }
        scout = RedisScout(
            definition, directory: directory, health: health, loop: loop, resolver: resolver
        ) { [weak self] in self?.follow($0) }
    }

    /// Searches for the servers soon.
    func look() { scout?.look() }

    /// Passes the messages of a channel to `tell` from now on.
    func subscribe(to channel: String, _ tell: @escaping @Sendable (RedisEvent) -> Void) {
        self.channel = channel
        self.tell = tell
        if let map = directory.map { follow(map) }
    }

    /// Listens to these masters, and to no others.
    private func follow(_ map: RedisMap) {
        guard let channel else { return }
        let places = Set(map.masters.map(\.place))
        for (place, subscription) in subscriptions where !places.contains(place) {
            subscriptions[place] = nil
            subscription.close()
            standing.remove(place)
        }
        let new = places.subtracting(subscriptions.keys)
        // Messages of a new master are not received yet.
        if !new.isEmpty { turn(on: false) }
        for place in new {
            subscriptions[place] = RedisSubscription(
                definition.target(place), channel: channel, health: health, loop: loop, resolver: resolver
            ) { [weak self] in self?.heard($0, from: place) }
        }
        turn(on: !subscriptions.isEmpty && standing.count == subscriptions.count)
    }

    private func heard(_ event: RedisEvent, from place: RedisUrl.Place) {
        switch event {
        case .began:
            standing.insert(place)
            turn(on: standing.count == subscriptions.count)
        case .ended:
            standing.remove(place)
            turn(on: false)
            scout?.look()
        case .message, .answered: tell?(event)
        }
    }

    private func turn(on isOn: Bool) {
        guard self.isOn != isOn else { return }
        self.isOn = isOn
        health.change { $0.isSubscribed = isOn }
        tell?(isOn ? .began : .ended)
    }

    func close() {
        scout?.close()
        scout = nil
        let open = subscriptions.values
        subscriptions = [:]
        for subscription in open { subscription.close() }
        turn(on: false)
        tell = nil
    }
}
