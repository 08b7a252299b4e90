import HttpWare

/// An authorization server: each refresh token works once, and brings the next.
final class TokenServer: Place {
    unowned let world: World
    private var underWay = 0
    private var issued = 1
    private var spent: Set<String> = []
    /// The access tokens, and until when they are valid.
    private var valid: [String: Int64] = [:]
    private var failsUntil: Int64 = -1
    private var delay = 0

    /// Seconds that an access token lives.
    static let life = 4
    static let first = "r1"

    init(_ world: World) { self.world = world }

    var welcome: Network.Welcome { .accepted }
    func accept(_ wire: Wire) -> any Peer { TokenPeer(self, wire) }

    /// From now on, an answer takes `delay` milliseconds, and for a while each is a 503.
    func change(_ step: Step) {
        delay = step["delay"]
        failsUntil = world.timeline.now + Int64(step["for"]) * 1_000_000
    }

    func accepts(_ token: String) -> Bool { valid[token].map { $0 > world.timeline.now } ?? false }

    /// Withdraws all access tokens, which clients learn by a 401.
    func withdraw() { valid = [:] }

    fileprivate func begin() {
        underWay += 1
        if underWay > 1 { world.judge.fail("\(underWay) refreshes of one credential are under way") }
    }

    fileprivate func end() { underWay -= 1 }

    fileprivate func answer(_ content: String) -> (wait: Int, response: String) {
        world.judge.note("the token server receives \(content)")
        if world.timeline.now < failsUntil {
            return (delay, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        }
        let token =
            content.split(separator: "&").first { $0.hasPrefix("refresh_token=") }?.dropFirst(14).description ?? ""
        if spent.contains(token) || token != "r\(issued)" {
            world.judge.fail("the refresh token \(token) was redeemed again; the present one is r\(issued)")
            let json = #"{"error":"invalid_grant"}"#
            return (
                0,
                "HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: \(json.utf8.count)\r\n\r\n\(json)"
            )
        }
        spent.insert(token)
        issued += 1
        let access = "a\(issued)"
        valid[access] = world.timeline.now + Int64(TokenServer.life) * 1_000_000_000 + Int64(delay) * 1_000_000
        let json =
            #"{"access_token":"\#(access)","token_type":"Bearer","expires_in":\#(TokenServer.life),"refresh_token":"r\#(issued)"}"#
        return (
            delay,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(json.utf8.count)\r\n\r\n\(json)"
        )
    }
}

/// One connection of the authorization server.
private final class TokenPeer: Peer {
    private unowned let server: TokenServer
    private let wire: Wire
    private var reader = MessageReader(readsRequests: true)
    private var content: [UInt8] = []
    private var isUnderWay = false

    init(_ server: TokenServer, _ wire: Wire) {
        self.server = server
        self.wire = wire
    }

    func received(_ bytes: [UInt8]) {
        reader.append(bytes)
        while let event = reader.next() {
            switch event {
            case .head:
                content = []
                isUnderWay = true
                server.begin()
            case .content(let piece): content += piece
            case .end:
                let (wait, response) = server.answer(String(decoding: content, as: UTF8.self))
                server.world.timeline.after(wait * 1000) { [weak self] in
                    guard let self else { return }
                    end()
                    wire.send(Array(response.utf8))
                }
            case .malformed(let what): server.world.judge.fail("the token server received a malformed request: \(what)")
            }
        }
    }

    private func end() {
        if isUnderWay { server.end() }
        isUnderWay = false
    }

    func receivedEnd() {
        end()
        wire.close()
    }

    func wasReset() { end() }
}
