import HttpWare

/// A connection of an origin server, for its server.
protocol OriginLink: AnyObject {
    /// Ends after the requests that it carries.
    func endSoftly()
    func breakOff()
    func closeIfIdle()
}

/// An origin server that speaks HTTP/1.1, and does what the step of each request says.
final class OriginServer: Place {
    let name: String
    unowned let world: World
    private let speaksHttp2: Bool
    private var connections: [any OriginLink] = []
    /// The time until which it refuses connections, or does not answer them.
    private var refusesUntil: Int64 = -1
    private var hangsUntil: Int64 = -1

    init(_ name: String, _ world: World, speaksHttp2: Bool) {
        self.name = name
        self.speaksHttp2 = speaksHttp2
        self.world = world
    }

    var welcome: Network.Welcome {
        world.timeline.now < hangsUntil ? .silence : world.timeline.now < refusesUntil ? .refused : .accepted
    }

    /// Whether it answers nothing now.
    var isHanging: Bool { world.timeline.now < hangsUntil }

    func accept(_ wire: Wire) -> any Peer {
        if speaksHttp2 {
            let connection = Http2OriginConnection(self, wire)
            connections.append(connection)
            return connection
        }
        let connection = OriginConnection(self, wire)
        connections.append(connection)
        return connection
    }

    func ended(_ connection: any OriginLink) { connections.removeAll { $0 === connection } }

    /// Ends all connections and refuses others for a while.
    func restart(_ step: Step) {
        refusesUntil = world.timeline.now + Int64(step["for"]) * 1_000_000
        for connection in connections { step["soft"] != 0 ? connection.endSoftly() : connection.breakOff() }
        if step["soft"] == 0 { connections = [] }
    }

    func hang(_ step: Step) { hangsUntil = world.timeline.now + Int64(step["for"]) * 1_000_000 }

    /// Closes the connections that carry no request now.
    func closeIdle() { for connection in connections { connection.closeIfIdle() } }
}

/// One connection of an origin server.
final class OriginConnection: Peer, OriginLink {
    private unowned let server: OriginServer
    private let wire: Wire
    private var reader = MessageReader(readsRequests: true)
    private var asked: Judge.Asked?
    private var head = Head()
    private var content: [UInt8] = []
    private var isAnswering = false
    private var hasAnswered = false
    private var hasRequest = false
    private var closesAfter = false
    private var isEnding = false
    /// Whose the connection is, since a request that authenticated it.
    private var user: Int?

    init(_ server: OriginServer, _ wire: Wire) {
        self.server = server
        self.wire = wire
    }

    private var judge: Judge { server.world.judge }
    private var timeline: Timeline { server.world.timeline }

    func received(_ bytes: [UInt8]) {
        reader.append(bytes)
        while let event = reader.next() {
            switch event {
            case .head(let head): begin(head)
            case .content(let piece): content += piece
            case .end: requestEnded()
            case .malformed(let what):
                judge.fail("\(server.name) received a malformed request: \(what)")
                return close()
            }
        }
    }

    private func begin(_ head: Head) {
        if hasRequest { judge.fail("\(server.name) received a request before it had answered the one before") }
        hasRequest = true
        hasAnswered = false
        isAnswering = false
        content = []
        self.head = head
        asked = judge.forwarded(head, to: "\(server.name)/\(wire.number)")
        guard let asked else { return close() }
        if Room(asked.step) == .named,
            !server.world.names.mayReach(
                server.name, from: asked.step["name"], through: wire.replica, sentAt: asked.sentAt)
        {
            judge.fail("request \(asked.step.number) reached a server that has lost its name long ago")
        }
        if asked.step["early"] != 0 { answer(asked) }
    }

    private func requestEnded() {
        guard let asked else { return }
        judge.forwardedWhole(asked, content)
        if !isAnswering { answer(asked) } else if hasAnswered { next() }
    }

    private func next() {
        hasRequest = false
        asked = nil
        if isEnding { close() }
    }

    /// Whether the step's harm is for this time that the request came.
    private func isHarmed(_ asked: Judge.Asked) -> Bool { asked.step["again"] != 0 || asked.forwards.count == 1 }

    private func answer(_ asked: Judge.Asked) {
        isAnswering = true
        let step = asked.step
        if step["silent"] != 0, isHarmed(asked) { return server.world.cache.noteFailure(step) }
        for _ in 0..<step["interim"] { wire.send(Array("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".utf8)) }
        let wait = step["delay"] * 1000
        if wait == 0, !server.isHanging { return respond(asked) }
        timeline.after(wait) { [weak self] in self?.respondUnlessHanging(asked) }
    }

    private func respondUnlessHanging(_ asked: Judge.Asked) {
        guard self.asked === asked else { return }
        if server.isHanging { return timeline.after(50_000) { [weak self] in self?.respondUnlessHanging(asked) } }
        respond(asked)
    }

    private func respond(_ asked: Judge.Asked) {
        let step = asked.step
        if let login = head["authorization"], login.hasPrefix("NTLM ") { user = Int(login.dropFirst(5)) }
        let response = server.world.response(to: asked, head, of: user)
        closesAfter = step["closes"] != 0 || response.endsByClose
        var bytes = response.bytes
        if isHarmed(asked) {
            if step["reset"] != 0 || step["cut"] != 0 { server.world.cache.noteFailure(step) }
            if step["reset"] != 0 {
                bytes = Array(bytes.prefix(step["reset"] - 1))
                return send(bytes, gap: step["gap"]) { $0.breakOff() }
            }
            if step["cut"] != 0 {
                let isWhole = bytes.count < step["cut"]
                bytes = Array(bytes.prefix(step["cut"] - 1))
                return send(bytes, gap: step["gap"]) { response.endsByClose && !isWhole ? $0.breakOff() : $0.close() }
            }
            if step["drops"] != 0 { return send(bytes, gap: step["gap"]) { $0.close() } }
        }
        send(bytes, gap: step["gap"]) { connection in
            if connection.closesAfter { return connection.close() }
            connection.hasAnswered = true
            if !connection.reader.isInMessage { connection.next() }
        }
    }

    private func send(_ bytes: [UInt8], gap: Int, then: @escaping (OriginConnection) -> Void) {
        guard gap > 0, bytes.count > 1 else {
            wire.send(bytes)
            return then(self)
        }
        let half = bytes.count / 2
        wire.send(Array(bytes[..<half]))
        timeline.after(gap * 1000) { [weak self] in
            guard let self else { return }
            wire.send(Array(bytes[half...]))
            then(self)
        }
    }

    func receivedEnd() {
        // A client that half-closes still reads; the gateway never does that to an origin server before its response.
        if !hasRequest || reader.isInMessage { close() } else { isEnding = true }
    }

    func wasReset() { server.ended(self) }

    func close() {
        wire.close()
        server.ended(self)
    }

    func breakOff() {
        wire.reset()
        server.ended(self)
    }

    func endSoftly() { if hasRequest { isEnding = true } else { close() } }

    func closeIfIdle() { if !hasRequest, !reader.isInMessage { close() } }
}
