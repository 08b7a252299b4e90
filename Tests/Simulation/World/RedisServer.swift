import HttpWare

/// A Redis server as far as the gateway uses one: values that expire, and the scripts of its limits and locks.
final class RedisServer: Place {
    unowned let world: World
    private var values: [String: (value: [UInt8], until: Int64?)] = [:]
    private var known: Set<String> = []
    private var connections: [RedisPeer] = []
    private var refusesUntil: Int64 = -1
    fileprivate var hangsUntil: Int64 = -1

    init(_ world: World) { self.world = world }

    private var now: Int64 { world.timeline.now }
    fileprivate var timeline: Timeline { world.timeline }

    var welcome: Network.Welcome { now < hangsUntil ? .silence : now < refusesUntil ? .refused : .accepted }

    func accept(_ wire: Wire) -> any Peer {
        let peer = RedisPeer(self, wire)
        connections.append(peer)
        return peer
    }

    fileprivate func ended(_ peer: RedisPeer) { connections.removeAll { $0 === peer } }

    /// Ends all connections, and refuses others for a while. With `forgets`, nothing is left of the values.
    func restart(_ step: Step) {
        refusesUntil = now + Int64(step["for"]) * 1_000_000
        if step["forgets"] != 0 { values = [:] }
        known = []
        let ended = connections
        connections = []
        for peer in ended { peer.breakOff() }
    }

    func hang(_ step: Step) { hangsUntil = now + Int64(step["for"]) * 1_000_000 }

    // MARK: Commands

    fileprivate func answer(_ words: [[UInt8]]) -> [UInt8] {
        let texts = words.map { String(decoding: $0, as: UTF8.self) }
        switch texts[0].uppercased() {
        case "PING": return Array("+PONG\r\n".utf8)
        case "SELECT", "AUTH": return Array("+OK\r\n".utf8)
        case "GET": return RedisServer.bulk(value(texts[1]))
        case "DEL":
            defer { values[texts[1]] = nil }
            return RedisServer.integer(value(texts[1]) == nil ? 0 : 1)
        case "SET": return set(words, texts)
        case "EVALSHA":
            guard known.contains(texts[1]) else { return Array("-NOSCRIPT No matching script.\r\n".utf8) }
            return countRequest(texts)
        case "EVAL":
            if texts[1].contains("'TIME'") {
                // Whatever the digest is: the gateway has one script that it calls by its digest.
                known.insert(RedisServer.digest(of: texts[1]))
                return countRequest(texts)
            }
            return lock(texts)
        default:
            world.judge.fail("the Redis server received a command that it does not know: \(texts[0])")
            return Array("-ERR unknown command\r\n".utf8)
        }
    }

    private static func digest(of script: String) -> String { Sha1Digest(of: script.utf8).hex }

    private func value(_ key: String) -> [UInt8]? {
        guard let held = values[key] else { return nil }
        guard held.until.map({ $0 > now }) ?? true else {
            values[key] = nil
            return nil
        }
        return held.value
    }

    private func set(_ words: [[UInt8]], _ texts: [String]) -> [UInt8] {
        let options = texts.dropFirst(3).map { $0.uppercased() }
        if options.contains("NX"), value(texts[1]) != nil { return Array("$-1\r\n".utf8) }
        var until: Int64?
        if let index = options.firstIndex(of: "PX") { until = now + (Int64(texts[index + 1]) ?? 0) * 1_000_000 }
        values[texts[1]] = (words[2], until)
        return Array("+OK\r\n".utf8)
    }

    /// The scripts of the lock: take, extend, give back.
    private func lock(_ texts: [String]) -> [UInt8] {
        let (script, key, mark) = (texts[1], texts[3], texts[4])
        let until = now + (Int64(texts[5]) ?? 0) * 1_000_000
        let holder = value(key).map { String(decoding: $0, as: UTF8.self) }
        if script.contains("'NX'") {
            if let holder, !holder.hasPrefix(texts[6]) { return RedisServer.integer(0) }
            values[key] = (Array(mark.utf8), until)
            return RedisServer.integer(1)
        }
        guard holder == mark else { return RedisServer.integer(0) }
        if script.contains("PEXPIRE") { values[key] = (Array(mark.utf8), until) } else { values[key] = nil }
        return RedisServer.integer(1)
    }

    /// The script of a limit, in microseconds.
    private func countRequest(_ texts: [String]) -> [UInt8] {
        let key = texts[3]
        let now = Double(self.now / 1000) + Double(Timeline.origin - 1_577_836_800) * 1_000_000
        let numbers = texts[4...6].map { (Double($0) ?? 0) / 1000 }
        let (interval, tolerance, patience) = (numbers[0], numbers[1], numbers[2])
        let held = value(key).flatMap { Double(String(decoding: $0, as: UTF8.self)) } ?? 0
        let after = min(max(now, held), now + tolerance + patience) + interval
        let wait = after - tolerance - now
        if wait > patience { return RedisServer.pair(0, wait) }
        values[key] = (Array("\(after)".utf8), self.now + Int64((after - now) * 1000))
        return wait > 0 ? RedisServer.pair(2, wait) : RedisServer.pair(1, after - now)
    }

    private static func integer(_ number: Int) -> [UInt8] { Array(":\(number)\r\n".utf8) }
    private static func bulk(_ value: [UInt8]?) -> [UInt8] {
        value.map { Array("$\($0.count)\r\n".utf8) + $0 + [13, 10] } ?? Array("$-1\r\n".utf8)
    }
    private static func pair(_ kind: Int, _ microseconds: Double) -> [UInt8] {
        Array("*2\r\n:\(kind)\r\n:\(Int(microseconds.rounded(.up)))\r\n".utf8)
    }
}

/// One connection of the Redis server.
private final class RedisPeer: Peer {
    private unowned let server: RedisServer
    private let wire: Wire
    private var bytes: [UInt8] = []
    private var isWaiting = false

    init(_ server: RedisServer, _ wire: Wire) {
        self.server = server
        self.wire = wire
        // Redis is near.
        wire.latency = min(wire.latency, 1000)
    }

    func received(_ more: [UInt8]) {
        bytes += more
        answer()
    }

    private func answer() {
        if isWaiting { return }
        let left = server.hangsUntil - server.timeline.now
        if left > 0 {
            isWaiting = true
            return server.timeline.after(Int(left / 1000) + 1) { [weak self] in
                self?.isWaiting = false
                self?.answer()
            }
        }
        while let words = takeCommand() { wire.send(server.answer(words)) }
    }

    /// A whole command of RESP; `nil` before it is there.
    private func takeCommand() -> [[UInt8]]? {
        var place = 0
        func line() -> Int? {
            guard let end = bytes[place...].firstIndex(of: 10) else { return nil }
            defer { place = end + 1 }
            return Int(String(decoding: bytes[(place + 1)..<(end - 1)], as: UTF8.self))
        }
        guard bytes.first == UInt8(ascii: "*"), let count = line() else { return nil }
        var words: [[UInt8]] = []
        for _ in 0..<count {
            guard place < bytes.count, let length = line(), bytes.count >= place + length + 2 else { return nil }
            words.append(Array(bytes[place..<place + length]))
            place += length + 2
        }
        bytes.removeFirst(place)
        return words
    }

    func receivedEnd() {
        wire.close()
        server.ended(self)
    }

    func wasReset() { server.ended(self) }
    func breakOff() { wire.reset() }
}
