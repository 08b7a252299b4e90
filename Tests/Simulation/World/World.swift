import HttpWare

/// A simulated world: replicas of a gateway, and clients and servers that speak to them over a network in memory, on one thread and one clock.
public final class World {
    let script: Script
    let timeline = Timeline()
    let network: Network
    let judge: Judge
    let cache: CacheOracle
    let names: Names
    private(set) var redis: RedisServer!  // set in init, as the next: they need the world
    private(set) var tokens: TokenServer!
    private(set) var replicas: [Replica] = []
    private var clients: [Int: Client] = [:]
    private(set) var origins: [String: OriginServer] = [:]
    private var turns = 0

    /// The result of a run.
    public struct Outcome {
        /// The broken invariants; empty if all held.
        public let violations: [String]
        /// The events, line by line, if they were kept.
        public let history: [String]
        /// A digest of what happened, which another run of the script must have, too.
        public let digest: UInt64
    }

    /// Milliseconds that follow the last step: longer than every timeout in the configuration.
    private static let patience = 60_000

    init(_ script: Script, keepsHistory: Bool = false) throws {
        self.script = script
        network = Network(timeline, seed: script.seed)
        network.calm = script.isCalm
        judge = Judge(script, timeline)
        judge.keepsHistory = keepsHistory
        cache = CacheOracle(judge)
        names = Names(timeline)
        for (name, address) in World.places { add(OriginServer(name, self, speaksHttp2: name == "http2"), at: address) }
        redis = RedisServer(self)
        tokens = TokenServer(self)
        if let address = SocketAddress("10.0.0.20:6379") { network.listen(redis, at: address) }
        if let address = SocketAddress("10.0.0.21:80") { network.listen(tokens, at: address) }
        for number in 0..<World.replicaCount { replicas.append(try Replica(number, self)) }
    }

    static let replicaCount = 2
    private static let places = [
        ("plain", "10.0.0.1:80"), ("pair-a", "10.0.0.2:80"), ("pair-b", "10.0.0.3:80"), ("cache", "10.0.0.4:80"),
        ("own", "10.0.0.5:80"), ("http2", "10.0.0.6:80"),
        ("token", "10.0.0.7:80"), ("limit", "10.0.0.8:80"), ("named-a", "10.0.0.31:80"), ("named-b", "10.0.0.32:80"),
    ]

    private func add(_ origin: OriginServer, at address: String) {
        origins[origin.name] = origin
        if let address = SocketAddress(address) { network.listen(origin, at: address) }
    }

    /// Runs a script in a world of its own.
    static func run(_ script: Script, keepsHistory: Bool = false) throws -> Outcome {
        try ReplaceableRandom.following(seed: script.seed) {
            let world = try World(script, keepsHistory: keepsHistory)
            // The replicas are made: their credentials share Redis, but nothing is logged.
            OutputGate.whileClosed { world.run() }
            return Outcome(violations: world.judge.violations, history: world.judge.history, digest: world.digest)
        }
    }

    private func run() {
        for step in script.steps { timeline.after(step.at * 1000) { [unowned self] in perform(step) } }
        let last = (script.steps.map(\.at).max() ?? 0) + World.patience
        pass(until: last)
        if judge.violations.isEmpty { judge.finish() }
        if judge.violations.isEmpty { judgeLimits() }
        if judge.violations.isEmpty {
            for client in clients.values { client.closeAll() }
            pass(until: last + World.patience)
            judgeRest()
        }
        for replica in replicas { replica.close() }
        timeline.clear()
    }

    /// Lets time pass, from event to event and from timer to timer.
    private func pass(until milliseconds: Int) {
        let end = Int64(milliseconds) * 1_000_000
        while judge.violations.isEmpty {
            settle()
            let dues = replicas.compactMap { $0.loop.nextDue?.nanoseconds } + (timeline.nextDue.map { [$0] } ?? [])
            guard let due = dues.min(), due <= end else { break }
            timeline.move(to: due)
        }
        guard judge.violations.isEmpty else { return }
        timeline.move(to: end)
        settle()
    }

    /// Turns the loops until nothing more is to do at this time.
    private func settle() {
        for _ in 0..<10_000 {
            turns += 1
            var hasWork = false
            for replica in replicas {
                network.replica = replica.number
                if !replica.turn() { return judge.fail("replica \(replica.number) does not come to rest") }
                if network.tell(replica.number, turn: turns) { hasWork = true }
            }
            judgeNow()
            if !hasWork || !judge.violations.isEmpty { return }
        }
        judge.fail("the network does not come to rest")
    }

    // MARK: Steps

    private func perform(_ step: Step) {
        switch step.kind {
        case "request": client(step["client"]).send(step)
        case "restart": origin(step).restart(step)
        case "hang": origin(step).hang(step)
        case "redis": step["hangs"] != 0 ? redis.hang(step) : redis.restart(step)
        case "move": names.swap()
        case "tokens": tokens.change(step)
        case "withdraw": tokens.withdraw()
        case "idle": origin(step).closeIdle()
        default: judge.fail("an unknown step: \(step.text)")
        }
        if step.kind != "request" { judge.note(step.text) }
    }

    private func client(_ number: Int) -> Client {
        if let known = clients[number] { return known }
        let client = Client(number, replica: number % replicas.count, self)
        clients[number] = client
        return client
    }

    private func origin(_ step: Step) -> OriginServer {
        let all = World.places
        // The list is a constant that is not empty, and each place has its server.
        return origins[all[step["origin"] % all.count].0]!
    }

    func connect(_ peer: ClientConnection, _ client: Client) -> Wire {
        let address = SocketAddress.ip(IPAddress(ipv4: 0xc000_0200 + UInt32(client.number % 200)), port: 50_000)
        let wire = network.connect(peer, to: client.replica, from: address)
        replicas[client.replica].accept(wire, from: address)
        return wire
    }

    // MARK: Messages

    func target(of step: Step) -> String {
        let room = Room(step)
        if room == .named { return "/named\(step["name"])/\(step.number)" }
        return "/\(room.path)/\(room == .cache ? step["key"] : step.number)"
    }

    /// The fields of the client's request that its room knows.
    func fields(of step: Step) -> String {
        var lines = ""
        switch Room(step) {
        case .cache:
            lines += "Tenant: \(step["tenant"])\r\n"
            if step["authorized"] != 0 { lines += "Authorization: User \(step["user"])\r\n" }
            if step["cookie"] != 0 { lines += "Cookie: user=\(step["user"])\r\n" }
            if step["wish"] != 0 { lines += "Cache-Control: \(CacheOracle.wish(step))\r\n" }
        case .own: if step["login"] == 1 { lines += "Authorization: NTLM \(step["user"])\r\n" }
        default: break
        }
        return lines
    }

    /// Whether the response to the request comes from its own forwarding.
    func isOwn(_ step: Step) -> Bool { Room(step) != .cache }

    struct Response {
        var bytes: [UInt8]
        var endsByClose: Bool
    }

    /// The response of the origin server. `user` is who the connection belongs to, if it has been authenticated.
    func response(to asked: Judge.Asked, _ head: Head, of user: Int?) -> Response {
        let step = asked.step
        let user = user ?? head.number("sim-user") ?? -1
        let number = head.number("sim") ?? -1
        var status = step["status"] == 0 ? 200 : step["status"]
        var lines = ""
        if Room(step) == .cache {
            let tag = "\"\(step["key"]).\(step["version"])\""
            if asked.method != "POST", step["tag"] != 0 {
                if head["if-none-match"] == tag { status = 304 }
                lines += "ETag: \(tag)\r\n"
            }
            let directives = CacheOracle.directives(step)
            if !directives.isEmpty { lines += "Cache-Control: \(directives)\r\n" }
            if step["vary"] != 0 { lines += "Vary: Tenant\r\n" }
            lines += "Date: \(HttpDateText.text(timeline.clock.wallNow()))\r\n"
            cache.noteGenerated(asked, status: status)
        }
        if Room(step) == .token {
            let token = head["authorization"]?.split(separator: " ").last.map(String.init) ?? ""
            if !tokens.accepts(token) {
                status = 401
                lines += "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n"
                judge.note("request \(number) came with the token \(token), which is not valid")
            }
        }
        if Room(step) == .own, step["login"] == 2 {
            status = 401
            lines += "WWW-Authenticate: NTLM\r\n"
        }
        // A 304 keeps whose the stored response is.
        lines += status == 304 ? "Sim-Validated: \(number)\r\n" : "Sim-Id: \(number)\r\nSim-User: \(user)\r\n"
        lines = "HTTP/1.1 \(status) X\r\n" + lines
        if step["closes"] != 0 { lines += "Connection: close\r\n" }
        let content = Content.bytes(number, user, count: step["size"])
        let hasContent = asked.method != "HEAD" && status != 204 && status != 304
        switch step["framing"] {
        case 1 where status != 304:
            let trailers = step["trailers"] != 0 ? "Sim-Trailer: \(number)\r\n" : ""
            if !trailers.isEmpty { lines += "Trailer: Sim-Trailer\r\n" }
            let head = Array((lines + "Transfer-Encoding: chunked\r\n\r\n").utf8)
            return Response(
                bytes: head + (hasContent ? Content.chunked(content, most: 3000, trailers: trailers) : []),
                endsByClose: false)
        case 2 where hasContent:
            return Response(bytes: Array((lines + "Connection: close\r\n\r\n").utf8) + content, endsByClose: true)
        default:
            if status != 204, status != 304 { lines += "Content-Length: \(content.count)\r\n" }
            return Response(bytes: Array((lines + "\r\n").utf8) + (hasContent ? content : []), endsByClose: false)
        }
    }

    /// A whole response from an origin server must be the one to this request.
    func judgeContent(_ asked: Judge.Asked, _ replica: Int, _ head: Head, _ content: [UInt8]) {
        let step = asked.step
        let status = Int(head.first[1]) ?? 0
        if Room(step) == .cache, let source = head.number("sim-id"), let made = judge.asked[source] {
            cache.judgeResponse(asked, replica, source: source, validation: head.number("sim-validated"))
            if (200..<300).contains(status) { cache.noteSuccess(asked, replica: replica) }
            let user = head.number("sim-user") ?? -1
            if user != made.step["user"] { judge.fail("the response to request \(source) is one of user \(user)") }
            return judgeBytes(asked, status, content, Content.bytes(source, user, count: made.step["size"]))
        }
        guard head.number("sim-id") == step.number, head.number("sim-user") == step["user"] else {
            return judge.fail(
                "request \(step.number) of user \(step["user"]) got the response to request \(head["sim-id"] ?? "?") of user \(head["sim-user"] ?? "?")"
            )
        }
        judgeBytes(asked, status, content, Content.bytes(step.number, step["user"], count: step["size"]))
    }

    private func judgeBytes(_ asked: Judge.Asked, _ status: Int, _ content: [UInt8], _ whole: [UInt8]) {
        let hasContent = asked.method != "HEAD" && status != 204 && status != 304
        let expected = hasContent ? whole : []
        if content != expected {
            judge.fail(
                "request \(asked.step.number) got \(content.count) bytes as whole content, in place of \(expected.count)"
            )
        }
    }

    // MARK: Invariants

    private func judgeNow() {
        for (address, counts) in network.open where address == World.limited {
            for (replica, count) in counts where count > Replica.mostConnections {
                judge.fail("replica \(replica) has \(count) connections to \(address)")
            }
        }
    }

    private static let limited = SocketAddress("10.0.0.1:80")

    /// A limit for both replicas: between any two requests of a user that passed, there are at most as many as the burst and the rate allow. A
    /// request passed at some time between its sending and its arrival.
    func judgeLimits() {
        guard !judge.hasOutages else { return }
        let passed = judge.asked.values.filter { Room($0.step) == .limit && !$0.forwards.isEmpty }
        for (_, requests) in Dictionary(grouping: passed, by: { $0.step["user"] }) {
            for first in requests {
                for last in requests where last.sentAt >= first.sentAt {
                    let within = requests.filter {
                        $0.sentAt >= first.sentAt && $0.forwards[0].at <= last.forwards[0].at
                    }
                    let time = Double(last.forwards[0].at - first.sentAt) / 1e9
                    let most = Double(Replica.burst) + time * Double(Replica.rate) + 1
                    if Double(within.count) > most {
                        return judge.fail(
                            "\(within.count) requests passed a limit within \(time) s, which allows \(most)")
                    }
                }
            }
        }
    }

    /// Long after the last request: nothing is held any more.
    private func judgeRest() {
        for replica in replicas {
            if replica.connectionCount > 0 {
                judge.fail(
                    "replica \(replica.number) holds \(replica.connectionCount) connections of clients that left")
            }
            for pool in replica.pools where pool.waiting > 0 || pool.open > 0 {
                judge.fail(
                    "replica \(replica.number) holds \(pool.open) connections and \(pool.waiting) waiting requests for \(pool.endpoint)"
                )
            }
        }
    }

    private var digest: UInt64 {
        var digest = UInt64(turns)
        for number in judge.asked.keys.sorted() {
            let asked = judge.asked[number]
            for word in [number, asked?.forwards.count ?? 0, Int(asked?.answeredAt ?? 0)] {
                digest = SplitMix64.spread(digest ^ UInt64(bitPattern: Int64(word)))
            }
        }
        return digest
    }
}

/// The names of a world: what its name servers answer, and how soon.
final class Names {
    private let timeline: Timeline
    /// The servers of the two names, which swap them at times, and since when they are so.
    private var servers = ["named-a", "named-b"]
    private var since: Int64 = -.max / 2
    /// When each replica learned the present server of a name.
    private var learned: [[Int64?]] = Array(repeating: [nil, nil], count: World.replicaCount)
    /// When a request of each replica for a name arrived that had to make it look the name up again.
    private var due: [[Int64?]] = Array(repeating: [nil, nil], count: World.replicaCount)

    init(_ timeline: Timeline) { self.timeline = timeline }

    /// Each of the two names has the other's address from now on, as when addresses are given to other tenants.
    func swap() {
        servers.reverse()
        since = timeline.now
        learned = Array(repeating: [nil, nil], count: World.replicaCount)
        due = learned
    }

    /// Whether a request that was sent at this time may arrive at this server. The gateway looks a name up again with the first request after 30 s, and does
    /// not let that request wait.
    func mayReach(_ server: String, from name: Int, through replica: Int, sentAt: Int64) -> Bool {
        if servers[name] == server { return true }
        if let learned = learned[replica][name], sentAt > learned { return false }
        guard timeline.now - since > 31_000_000_000 else { return true }
        if let due = due[replica][name] { return sentAt < due + 1_000_000_000 }
        due[replica][name] = timeline.now
        return true
    }

    /// A replica's way to them.
    final class Questions: StandInNames {
        private let names: Names
        private let replica: Int
        private unowned let loop: EventLoop

        init(_ names: Names, of replica: Int, _ loop: EventLoop) {
            self.names = names
            self.replica = replica
            self.loop = loop
        }

        func lookUp(_ name: String, completion: @escaping (Result<[IPAddress], ResolveError>, _ ttl: Int64) -> Void) {
            let place = ["one.sim", "two.sim"].firstIndex(of: name)
            names.timeline.after(1000) { [names, loop, replica] in
                if let place { names.learned[replica][place] = names.timeline.now }
                let address = place.flatMap { IPAddress(names.servers[$0] == "named-a" ? "10.0.0.31" : "10.0.0.32") }
                loop.later { address.map { completion(.success([$0]), 5) } ?? completion(.failure(.notFound), 1) }
            }
        }
    }
}

/// The form of dates in fields. RFC 9110 §5.6.7.
enum HttpDateText {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

    /// The date of a time in January 2026, in which every world lives.
    static func text(_ time: WallTime) -> String {
        let seconds = Int(time.seconds - Timeline.origin)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = seconds / 86_400
        return
            "\(days[day % 7]), \(two(day + 1)) Jan 2026 \(two(seconds / 3600 % 24)):\(two(seconds / 60 % 60)):\(two(seconds % 60)) GMT"
    }
}
