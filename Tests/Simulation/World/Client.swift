import HttpWare

/// A client: it sends each request on an idle connection of its own, or on a new one, and judges what comes.
final class Client {
    let number: Int
    let replica: Int
    unowned let world: World
    private var connections: [ClientConnection] = []

    init(_ number: Int, replica: Int, _ world: World) {
        self.number = number
        self.replica = replica
        self.world = world
    }

    func send(_ step: Step) {
        let asked = Judge.Asked(step)
        let free = connections.last { $0.mayTake(pipelined: step["pipe"] != 0) }
        let connection = free ?? connect()
        connection.send(asked)
    }

    private func connect() -> ClientConnection {
        let connection = ClientConnection(self)
        connections.append(connection)
        return connection
    }

    func ended(_ connection: ClientConnection) { connections.removeAll { $0 === connection } }

    func closeAll() { for connection in connections { connection.leave() } }
}

/// One connection of a client.
final class ClientConnection: Peer {
    private unowned let client: Client
    private var reader = MessageReader(readsRequests: false)
    private var waiting: [Judge.Asked] = []
    private var head: Head?
    private var content: [UInt8] = []
    private var isClosing = false
    private var isSending = false
    /// Whether the client has closed, or broken, its end.
    private var isOver = false
    private var wire: Wire!  // set in init, by a call that needs self

    init(_ client: Client) {
        self.client = client
        wire = client.world.connect(self, client)
    }

    private var judge: Judge { client.world.judge }
    private var timeline: Timeline { client.world.timeline }

    func mayTake(pipelined: Bool) -> Bool {
        !isClosing && !isOver && !isSending && (waiting.isEmpty || pipelined && waiting.count < 4)
    }

    func send(_ asked: Judge.Asked) {
        let step = asked.step
        waiting.append(asked)
        judge.sent(asked)
        readerExpects()
        var lines =
            "\(asked.method) \(client.world.target(of: step)) HTTP/1.1\r\nHost: sim.test\r\nSim: \(step.number)\r\nSim-User: \(step["user"])\r\n"
        lines += client.world.fields(of: step)
        var bytes: [UInt8]
        if step["chunked"] != 0, !asked.content.isEmpty {
            bytes = Array((lines + "Transfer-Encoding: chunked\r\n\r\n").utf8)
            bytes += Content.chunked(asked.content, most: 1000)
        } else {
            if !asked.content.isEmpty || asked.method == "POST" {
                lines += "Content-Length: \(asked.content.count)\r\n"
            }
            bytes = Array((lines + "\r\n").utf8) + asked.content
        }
        if step["slow"] != 0 {
            let half = bytes.count / 2
            wire.send(Array(bytes[..<half]))
            isSending = true
            timeline.after(step["slow"] * 1000) { [self] in
                isSending = false
                sentLast(asked, Array(bytes[half...]))
            }
        } else {
            sentLast(asked, bytes)
        }
        if step["leave"] != 0 { timeline.after(step["leave"] * 1000) { [self] in if asked.end == nil { leave() } } }
    }

    private func sentLast(_ asked: Judge.Asked, _ bytes: [UInt8]) {
        guard !isOver else { return }
        asked.isSentWhole = true
        wire.send(bytes)
        if asked.step["half"] != 0 {
            isClosing = true
            wire.shut()
        }
        if asked.step["lazy"] != 0 {
            wire.pause()
            timeline.after(asked.step["lazy"] * 1000) { [self] in wire.resume() }
        }
    }

    private func readerExpects() { if head == nil { reader.isBodiless = waiting.first?.method == "HEAD" } }

    func received(_ bytes: [UInt8]) {
        guard !isOver else { return }
        reader.append(bytes)
        while !isOver, let event = reader.next() {
            switch event {
            case .head(let head): begin(head)
            case .content(let piece): content += piece
            case .end: responseEnded()
            case .malformed(let what):
                judge.fail("a client received a malformed response: \(what)")
                return leave()
            }
        }
    }

    private func begin(_ head: Head) {
        guard let asked = waiting.first else {
            // A gateway may say why it closes an idle connection.
            if head.first[1] != "408" { judge.fail("a client received a response that it did not ask for: \(head)") }
            return leave()
        }
        if let status = Int(head.first[1]), (100..<200).contains(status) {
            if status == 103, asked.step["interim"] == 0, client.world.isOwn(asked.step) {
                judge.fail("request \(asked.step.number) got a 103 of another request")
            }
            return
        }
        self.head = head
        content = []
        if head.list("connection").contains("close") { isClosing = true }
    }

    private func responseEnded() {
        guard let head, let asked = waiting.first else { return }
        self.head = nil
        waiting.removeFirst()
        judgeResponse(asked, head)
        readerExpects()
        if isClosing, !reader.endsByClose, waiting.isEmpty, asked.step["half"] == 0 { close() }
    }

    private func judgeResponse(_ asked: Judge.Asked, _ head: Head) {
        let status = Int(head.first[1]) ?? 0
        let isByGateway = head["sim-id"] == nil
        if isByGateway {
            if status < 400 {
                judge.fail("the gateway answered request \(asked.step.number) with \(status) of its own")
            }
        } else {
            client.world.judgeContent(asked, client.replica, head, content)
        }
        judge.ended(asked, .answered(status, byGateway: isByGateway), head, content)
    }

    func receivedEnd() {
        guard !isOver else { return }
        if head != nil, reader.endsByClose { responseEnded() }
        gone()
        wire.close()
    }

    func wasReset() {
        guard !isOver else { return }
        gone()
    }

    /// The gateway closed the connection: what it has not answered is cut off, or behind a response that said so.
    private func gone() {
        isOver = true
        for (index, asked) in waiting.enumerated() {
            let isBehind = index > 0 || waiting.count > 1 || isClosing && asked.step["half"] == 0 && head == nil
            judge.ended(asked, isBehind ? .unserved : .cutOff)
        }
        waiting = []
        client.ended(self)
    }

    /// The client closes its end.
    func leave() {
        guard !isOver else { return }
        for asked in waiting { judge.ended(asked, .left) }
        waiting = []
        close()
    }

    private func close() {
        isOver = true
        wire.close()
        client.ended(self)
    }
}
