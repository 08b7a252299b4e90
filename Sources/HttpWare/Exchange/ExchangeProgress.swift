// The progress of an exchange. The driver creates these values afresh for each exchange, so that nothing remains of the last one.

/// The result of a step for its caller. As a return value, the compiler ensures that callers check it.
enum Aftermath {
    /// The caller continues.
    case goesOn
    /// The exchange has ended, waits, or was continued by the step: the caller must not use it any more.
    case over
}

/// 2–4. The request on its way inward: the current ware, and the part of the request that has arrived.
struct RequestProgress {
    /// The index of the current or next middleware.
    var index = 0
    /// The middlewares that did not handle the request: their response halves do not run.
    var skipped = SkippedWares()
    /// The client has sent the whole request.
    var isWhole = false
    /// The request broke off, is too large, or came too late: the rest is discarded, and it is not sent again.
    var isRefused = false
    /// Whether the start of the content was awaited; `awaitedSince` is in nanoseconds of the loop's clock.
    var hasAwaited = false
    var awaitedSince: Int64 = 0
    /// The limit in bytes up to which content is collected for an editor; `nil` if none collects.
    var wantedByEditor: Int?
    /// The editor for which content was last collected.
    var triedEditor = -1
    /// The client got 100 (Continue).
    var hasSentContinue = false
    /// Content held for a ware that needs it whole, or until there is a connection.
    var held: [UInt8] = []
    /// Whether the client can supply the content again from its beginning.
    var mayStartOver = false
    /// All content so far, for sending it again; `nil` if it is not kept, or exceeded the limit.
    var kept: [UInt8]?

    /// Most requests have none of these: a new exchange clears one reference for all of them.
    private final class Rare {
        var filtered: ContentPath?
        var trailers: HttpFields?
        var given: [UInt8]?
    }
    private var rare: Rare?
    /// Whole content that passes filters, while more than one turn of the loop is needed.
    var filtered: ContentPath? {
        get { rare?.filtered }
        set { if rare != nil || newValue != nil { hold().filtered = newValue } }
    }
    var trailers: HttpFields? {
        get { rare?.trailers }
        set { if rare != nil || newValue != nil { hold().trailers = newValue } }
    }
    /// All content, if the client has it in memory, so that it can be sent again from its beginning.
    var given: [UInt8]? {
        get { rare?.given }
        set { if rare != nil || newValue != nil { hold().given = newValue } }
    }

    private mutating func hold() -> Rare {
        if let rare { return rare }
        let made = Rare()
        rare = made
        return made
    }
}

/// 5. The call of the origin server: its destination and its progress.
struct UpstreamCall {
    /// The attempts: the leading one, whose stream serves the exchange, and others beside it.
    var attempts: UpstreamAttempts
    /// The request was counted for its service.
    var isCounted = false
    /// When the request last went upstream, in nanoseconds of the loop's clock.
    var tryStarted: Int64 = 0
    /// The content that went upstream, while it may be needed again.
    var sent = SentContent()
    /// Some of the content has gone upstream through the filters.
    var hasSentContent = false
    /// The client's content, and its end, are forwarded upstream.
    var isForwarding = false

    /// Most calls have none of these: a new exchange clears one reference for all of them.
    private final class Rare {
        var connections: OwnedConnections?
        var path: ContentPath?
    }
    private var rare: Rare?
    /// The upstream connections that belong to this exchange alone; `nil` for almost all exchanges.
    var connections: OwnedConnections? {
        get { rare?.connections }
        set { if rare != nil || newValue != nil { hold().connections = newValue } }
    }
    /// The path of the content; `nil` before it, and if nothing acts on it.
    var path: ContentPath? {
        get { rare?.path }
        set { if rare != nil || newValue != nil { hold().path = newValue } }
    }
    /// The numbers of its attempts continue behind that one.
    init(behind made: Int = 0) { attempts = UpstreamAttempts(behind: made) }

    /// The source of the response; `nil` before there is a connection, and when the response is complete or was discarded.
    var stream: (any UpstreamStream)? {
        @inline(__always) _read { yield attempts.leading.stream }
        @inline(__always) _modify { yield &attempts.leading.stream }
    }
    /// The destination.
    var endpoint: Endpoint? {
        @inline(__always) _read { yield attempts.leading.endpoint }
        @inline(__always) _modify { yield &attempts.leading.endpoint }
    }

    private mutating func hold() -> Rare {
        if let rare { return rare }
        let made = Rare()
        rare = made
        return made
    }
}

/// 6–8. The response on its way back: the current ware, and the state of its content.
struct ResponseProgress {
    /// The next response half, counting down; -1 after the last one.
    var halfIndex = -1
    /// The response halves of middlewares up to this index do not run; -1 runs all.
    var halfFloor = -1
    /// The next postware, counting up.
    var postIndex = 0
    /// Content collected for a ware that needs it whole.
    var collected: [UInt8] = []
    /// The limit in bytes up to which collected content is useful; `nil` if the ware needs it whole anyway.
    var wantedIfWhole: Int?
    /// The content is awaited even if it comes slowly.
    var isWantedByEditor = false
    /// When content that must come without a pause was asked for, in nanoseconds of the loop's clock.
    var collectedSince: Int64 = 0
    /// The place of the ware for which content was last collected.
    var triedIfWhole = -1
    /// The place of the current ware: postwares count from 0, and response halves from -2 down.
    var warePlace: Int { halfIndex >= 0 ? -2 - halfIndex : postIndex }
    /// Content that arrived before the wares had answered: it is sent after the head.
    var early: [UInt8] = []
    /// The delay of the requested replay after the request is complete.
    var replayDelay = Duration.zero
    /// The replay waits only for its delay.
    var isReplayTimed = false
    var clientEndedTunnel = false
    var upstreamEndedTunnel = false
    /// The exchange has no client: its events go to no client, and no postware runs.
    var isBackground = false
    /// It runs beside another exchange, and does not count towards the limit of background exchanges.
    var isBeside = false
    /// The exchange had a client, which left.
    var hasClientLeft = false

    /// Most responses have none of these: a new exchange clears one reference for all of them.
    private final class Rare {
        var trailers: HttpFields?
        var filtered: ContentPath?
        var path: ContentPath?
    }
    private var rare: Rare?
    var trailers: HttpFields? {
        get { rare?.trailers }
        set { if rare != nil || newValue != nil { hold().trailers = newValue } }
    }
    /// Whole content that passes the filters, while more than one turn of the loop is needed.
    var filtered: ContentPath? {
        get { rare?.filtered }
        set { if rare != nil || newValue != nil { hold().filtered = newValue } }
    }
    /// The path of the content; `nil` before it, and if nothing acts on it.
    var path: ContentPath? {
        get { rare?.path }
        set { if rare != nil || newValue != nil { hold().path = newValue } }
    }

    private mutating func hold() -> Rare {
        if let rare { return rare }
        let made = Rare()
        rare = made
        return made
    }
}

/// A CONNECT to a host whose tunnels the gateway may intercept.
final class Interception {
    let interceptor: any TunnelInterceptor
    /// Whether the tunnel passes unread after all; the client already has its response.
    let isUnread: Bool
    /// The tunnel's address, if the CONNECT named an address and the client then named a host.
    let address: IPAddress?

    init(_ interceptor: any TunnelInterceptor, isUnread: Bool = false, address: IPAddress? = nil) {
        self.interceptor = interceptor
        self.isUnread = isUnread
        self.address = address
    }
}

/// The current wait of a ware; both are `nil` without one.
struct WaitState {
    var task: Task<Void, Never>?
    /// The hold of the request, if the wait needs no task.
    var hold: ExchangeHold?
}

/// The indices of middlewares that a request skipped. The first 64 need no allocation.
struct SkippedWares {
    private var first: UInt64 = 0
    private var others: [Int] = []

    mutating func insert(_ index: Int) {
        if index < 64 { first |= 1 &<< UInt64(index) } else { others.append(index) }
    }

    func contains(_ index: Int) -> Bool {
        index < 64 ? first & 1 &<< UInt64(index) != 0 : others.contains(index)
    }

    /// Removes the indices from this one on: the request passes there again.
    mutating func forget(from index: Int) {
        if index < 64 { first &= (1 &<< UInt64(index)) &- 1 }
        if !others.isEmpty { others.removeAll { $0 >= index } }
    }
}
