import HttpWare

/// The facts about each request of a world, and the invariants that they must keep.
final class Judge {
    /// One time that a request reached an origin server.
    struct Forward {
        var at: Int64
        var hasEnded = false
    }

    enum End: Equatable {
        /// A whole response, with this status; from an origin server or from the gateway.
        case answered(Int, byGateway: Bool)
        /// The client saw that the response was cut off, or came not at all.
        case cutOff
        /// The client left before the end.
        case left
        /// The connection closed behind the response to an earlier request, as that response said.
        case unserved
    }

    final class Asked {
        let step: Step
        let content: [UInt8]
        var sentAt: Int64 = 0
        var answeredAt: Int64 = 0
        var isSentWhole = false
        var forwards: [Forward] = []
        /// How often an origin server told that it had not processed the request.
        var refusals = 0
        var end: End?

        init(_ step: Step) {
            self.step = step
            content = Content.bytes(step.number, step["user"], count: step["length"])
        }

        var method: String { Judge.methods[step["method"]] }
        var isIdempotent: Bool { method != "POST" }
    }

    static let methods = ["GET", "HEAD", "POST", "PUT", "DELETE"]

    let timeline: Timeline
    let script: Script
    private(set) var asked: [Int: Asked] = [:]
    private(set) var violations: [String] = []
    /// The events, for a person who reads them.
    private(set) var history: [String] = []
    var keepsHistory = false
    /// Whether anything in the script may break a connection on which other requests are.
    let hasBreaks: Bool
    /// Whether a server is away at times.
    let hasOutages: Bool

    init(_ script: Script, _ timeline: Timeline) {
        self.script = script
        self.timeline = timeline
        hasOutages = script.steps.contains { $0.kind != "request" && $0.kind != "move" }
        hasBreaks =
            hasOutages
            || script.steps.contains { step in Judge.breaks.contains { step[$0] != 0 } }
    }

    private static let breaks = [
        "cut", "reset", "silent", "closes", "drops", "leave", "half", "early", "slow", "lazy", "goaway", "refused",
        "framing",
    ]

    func fail(_ text: String) {
        violations.append("\(milliseconds) ms: \(text)")
        note("VIOLATION \(text)")
    }

    private var milliseconds: String {
        let micro = timeline.now / 1000
        return "\(micro / 1000).\(String(micro % 1000 + 1000).dropFirst())"
    }

    func note(_ text: @autoclosure () -> String) {
        if keepsHistory { history.append("\(milliseconds)  \(text())") }
    }

    // MARK: Events

    func sent(_ asked: Asked) {
        asked.sentAt = timeline.now
        self.asked[asked.step.number] = asked
        note("client sends \(asked.step.text)")
    }

    /// An origin server received the head of a request. Returns what was asked; `nil` if nothing was.
    func forwarded(_ head: Head, to place: String) -> Asked? {
        guard let number = head.number("sim"), let asked = asked[number] else {
            fail("\(place) received a request that no client sent: \(head.first) \(head.fields)")
            return nil
        }
        asked.forwards.append(Forward(at: timeline.now))
        note("\(place) receives \(number), time \(asked.forwards.count)")
        if head.first[0] != asked.method, Room(asked.step) != .cache {
            fail("request \(number) arrived as \(head.first[0])")
        }
        if head.number("sim-user") != asked.step["user"] {
            fail("request \(number) of user \(asked.step["user"]) arrived as one of \(head["sim-user"] ?? "nobody")")
        }
        if asked.end != nil, asked.end != .left, Room(asked.step) != .cache {
            fail("request \(number) was forwarded after its end")
        }
        let most = mostForwards(asked)
        if asked.forwards.count - asked.refusals > most {
            fail(
                "request \(number), a \(asked.method), was forwarded \(asked.forwards.count) times, \(asked.refusals) of them refused"
            )
        }
        return asked
    }

    /// P1: once, and an idempotent one again if its connection broke. A ware that repeats requests adds its own.
    private func mostForwards(_ asked: Asked) -> Int {
        switch Room(asked.step) {
        case .token: (asked.isIdempotent ? 2 : 1) * 2
        case .cache: 4
        default: asked.isIdempotent ? 2 : 1
        }
    }

    /// A whole request reached an origin server.
    func forwardedWhole(_ asked: Asked, _ content: [UInt8]) {
        if content != asked.content {
            fail("request \(asked.step.number) arrived whole, with \(content.count) other bytes")
        }
        if !asked.isSentWhole, !asked.content.isEmpty {
            fail("request \(asked.step.number) arrived whole before its client had sent it")
        }
        if !asked.forwards.isEmpty { asked.forwards[asked.forwards.count - 1].hasEnded = true }
    }

    /// An origin server is about to say that it has not processed the request.
    func refused(_ asked: Asked) { asked.refusals += 1 }

    /// A client's request ended.
    func ended(_ asked: Asked, _ end: End, _ head: Head? = nil, _ content: [UInt8] = []) {
        guard asked.end == nil else { return }
        asked.end = end
        asked.answeredAt = timeline.now
        note("request \(asked.step.number) ends: \(end)")
        switch end {
        case .answered(let status, byGateway: true): judgeRefusal(asked, status)
        case .cutOff: judgeCut(asked)
        default: break
        }
    }

    private func isHarmed(_ asked: Asked) -> Bool {
        Judge.breaks.contains { asked.step[$0] != 0 && $0 != "closes" && $0 != "framing" && $0 != "early" }
    }

    /// Whether the request must be answered by an origin server, whatever happens to other requests.
    func mustSucceed(_ asked: Asked) -> Bool {
        if Room(asked.step) == .cache, CacheOracle.wish(asked.step) == "only-if-cached" { return false }
        if !hasBreaks { return true }
        if !hasOutages, Room(asked.step) == .http2, isOnlyRefused {
            return asked.refusals <= 5 && asked.content.count <= 65_536
        }
        if hasOutages || isHarmed(asked) { return false }
        // A request may wait for one whose origin server failed, but not for one whose client left.
        if Room(asked.step) == .cache,
            script.steps.contains(where: { step in
                Room(step) == .cache && step["key"] == asked.step["key"]
                    && ["cut", "reset", "silent", "drops"].contains { step[$0] != 0 }
            })
        {
            return false
        }
        // A connection of HTTP/2 is that of many.
        if Room(asked.step) == .http2,
            script.steps.contains(where: { Room($0) == .http2 && ($0["drops"] != 0 || $0["cut"] != 0) })
        {
            return false
        }
        // A broken connection may have been another's last; a request without content goes out again.
        return asked.isIdempotent && asked.content.isEmpty
    }

    /// Whether all that is in the way of requests is that HTTP/2 origin servers refuse some, unseen: those go out again, whatever their method.
    private var isOnlyRefused: Bool {
        script.steps.allSatisfy { step in
            Judge.breaks.allSatisfy { step[$0] == 0 || $0 == "goaway" || $0 == "refused" || $0 == "closes" }
        }
    }

    private func judgeRefusal(_ asked: Asked, _ status: Int) {
        // A request that never left had nothing to do with what broke; a full pool makes it wait, and then refuses it.
        if asked.forwards.isEmpty, !hasOutages, !isHarmed(asked), status == 502, Room(asked.step) != .cache {
            fail("request \(asked.step.number) was answered 502 and never sent")
        }
        if mustSucceed(asked), Room(asked.step) != .limit {
            fail("request \(asked.step.number) was answered \(status) by the gateway, although nothing was in its way")
        }
    }

    private func judgeCut(_ asked: Asked) {
        if mustSucceed(asked) { fail("request \(asked.step.number) was cut off, although nothing was in its way") }
        if asked.forwards.isEmpty, !hasOutages, !isHarmed(asked), Room(asked.step) != .cache {
            fail("the connection of request \(asked.step.number) closed without an answer")
        }
    }

    /// Nothing more happens: every request must have ended.
    func finish() {
        for number in asked.keys.sorted() {
            guard let asked = asked[number], asked.end == nil else { continue }
            fail("request \(number) has waited since \(asked.sentAt / 1_000_000) ms and has no end")
        }
    }
}

/// The parts of the gateway that requests go through: a path's first letter, and a service.
enum Room: Int, CaseIterable {
    case plain, pair, cache, token, limit, own, http2, named

    var path: String { "\(self)" }

    init(_ step: Step) { self = Room(rawValue: step["room"]) ?? .plain }
}
