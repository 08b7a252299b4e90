// How far an exchange is. The driver makes these values anew for each exchange, so nothing of one is left for the next.

/// What a step leaves to the step that called it. The compiler sees that the caller looks.
enum Aftermath {
    /// The caller goes on.
    case goesOn
    /// The exchange has ended, waits, or was carried on by the step: the caller touches it no more.
    case over
}

/// 2–4. The request on its way inward: whose turn it is, and how much of the request came from the client.
struct RequestProgress {
    /// The place of the middleware whose turn it is, or would be next.
    var index = 0
    /// The middlewares that the request passed by: they are not asked about the response.
    var skipped = SkippedWares()
    /// The client sent all of it.
    var isWhole = false
    /// It broke, is too large, or came too late: the rest is thrown away, and it is not sent again.
    var isRefused = false
    /// The beginning of the content was waited for; since when, in nanoseconds of the loop's clock.
    var hasAwaited = false
    var awaitedSince: Int64 = 0
    /// The content is collected for an editor if there is no more of it than so many bytes; `nil` otherwise.
    var wantedByEditor: Int?
    /// The editor for which that was tried last.
    var triedEditor = -1
    /// The client was told to send its content.
    var hasSentContinue = false
    var trailers: HttpFields?
    /// Content that waits for a ware that needs it whole, or for a connection.
    var held: [UInt8] = []
    /// All content so far, for sending it again; `nil` when it is not kept, or grew over the limit.
    var kept: [UInt8]?
}

/// 5. The call of the origin server: where it goes, and what was sent.
struct UpstreamCall {
    /// The response comes from here; `nil` before there is a connection, and when the response is whole or not wanted.
    var stream: (any UpstreamStream)?
    /// The place in the queue for a connection.
    var ticket: ConnectionTicket?
    var endpoint: Endpoint?
    /// The endpoint as a member of the balancing of its service; `nil` if there is no balancing.
    var member: EndpointMember?
    /// The request counts among those under way at the endpoint.
    var isAtEndpoint = false
    /// The endpoints of its service that the request was sent to before, or could not be.
    var tried: [EndpointMember] = []
    var endpointsTried = 0
    /// The request counts among those of its service.
    var isCounted = false
    /// When the request went upstream, the last time, in nanoseconds of the loop's clock.
    var tryStarted: Int64 = 0
    /// When the endpoint was asked for, in nanoseconds of the loop's clock.
    var endpointAsked: Int64 = 0
    var hasRetried = false
    /// Some of the content has gone upstream, through the filters.
    var hasSentContent = false
    /// What the client sends goes on upstream, and its end too.
    var isForwarding = false
    /// What is left of a length that filters promised to keep; `nil` if nothing is promised.
    var lengthLeft: Int?
    /// Content of the request that goes upstream at a pace.
    var paced = PacedContent()
    /// Further attempts that wait for a response, beside the stream or the ticket above; the oldest first.
    var hedges: [HedgeAttempt] = []
    /// The stream or the ticket above was such an attempt, and has no response yet.
    var isHedge = false
}

/// 6–8. The response on its way back: whose turn it is, and how its content goes out.
struct ResponseProgress {
    /// The response half that is next, counting down; -1 when all were asked.
    var halfIndex = -1
    /// The response halves of middlewares up to this place are not asked; -1 asks all.
    var halfFloor = -1
    /// The postware that is next, counting up.
    var postIndex = 0
    var trailers: HttpFields?
    /// Content that a ware needs whole.
    var collected: [UInt8] = []
    /// What is collected is wanted only if it is whole within so many bytes; `nil` otherwise.
    var wantedIfWhole: Int?
    /// It is waited for, however slowly it comes.
    var isWantedByEditor = false
    /// The postware for which that was tried last.
    var triedIfWhole = -1
    /// Content that came before the wares had answered: it goes out behind the head.
    var early: [UInt8] = []
    /// Content that goes to the client at a pace, or up to a cut.
    var paced = PacedContent()
    /// What is left of a length that filters promised to keep; `nil` if nothing is promised.
    var lengthLeft: Int?
    /// How long the requested replay waits once the request is whole.
    var replayDelay = Duration.zero
    /// The replay only waits for its time.
    var isReplayTimed = false
    var clientEndedTunnel = false
    var upstreamEndedTunnel = false
    /// The exchange has no client: no client is told of what happens, and no postware is asked.
    var isBackground = false
    /// It goes beside another exchange, and does not count among those that take its place.
    var isBeside = false
    /// The client was there once, and left.
    var hasClientLeft = false
}

/// Content that waits for its time. It holds one piece: no more is read until that has gone.
struct PacedContent {
    private(set) var bytes: [UInt8] = []
    private(set) var from = 0
    /// How much may go when the time has come.
    var granted = 0
    /// A timer is set.
    var isTimed = false
    /// Behind it the content ends.
    var isEnded = false

    var isLeft: Bool { from < bytes.count }
    var left: Int { bytes.count - from }

    mutating func add(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

    mutating func add(_ more: [UInt8]) { if bytes.isEmpty { bytes = more } else { bytes += more } }

    /// Takes the next bytes out.
    mutating func take(_ count: Int) -> [UInt8] {
        let end = min(bytes.count, from + count)
        let piece = Array(bytes[from..<end])
        from = end
        if from == bytes.count {
            bytes = []
            from = 0
        }
        return piece
    }
}

/// A CONNECT to a host whose tunnels the gateway may read.
final class Interception {
    let rules: InterceptRules
    /// The tunnel passes unread after all; the client has its response already.
    let isUnread: Bool
    /// The address that the tunnel leads to, where the CONNECT named one and the client another host.
    let address: IPAddress?

    init(_ rules: InterceptRules, isUnread: Bool = false, address: IPAddress? = nil) {
        self.rules = rules
        self.isUnread = isUnread
        self.address = address
    }
}

/// What a ware waits for; nothing when neither is set.
struct WaitState {
    var task: Task<Void, Never>?
    /// What the request waits for if that is no task.
    var hold: ExchangeHold?
}

/// The places of middlewares that a request passed by. Without memory of its own for the first 64.
struct SkippedWares {
    private var first: UInt64 = 0
    private var others: [Int] = []

    mutating func insert(_ index: Int) {
        if index < 64 { first |= 1 &<< UInt64(index) } else { others.append(index) }
    }

    func contains(_ index: Int) -> Bool {
        index < 64 ? first & 1 &<< UInt64(index) != 0 : others.contains(index)
    }

    /// Forgets the places from this one on: the request goes there again.
    mutating func forget(from index: Int) {
        if index < 64 { first &= (1 &<< UInt64(index)) &- 1 }
        if !others.isEmpty { others.removeAll { $0 >= index } }
    }
}
