// One file: everything that a ware can ask about an exchange is found in one place.
/// One request and its final response, as wares see it: the client, the destination, the decisions, and the wares' values.
///
/// An exchange stays on its loop and ends exactly once.
public final class Exchange {
    /// The listener's name; `client` for a client in process.
    public internal(set) var listener = ""
    /// The route's name; `nil` without a route.
    public internal(set) var route: String?
    /// The service's name; `nil` without one.
    public var service: String? { serviceNotes?.name }
    /// The values that wares of all loops keep for the service; `nil` without a service.
    public internal(set) var serviceNotes: ServiceNotes? {
        didSet { heldServiceNotes = serviceNotes.map { Unmanaged.passUnretained($0) } }
    }
    /// `serviceNotes`, readable without a retain.
    @usableFromInline private(set) var heldServiceNotes: Unmanaged<ServiceNotes>?
    /// Whether the service is one of several that share the route's requests, so that another may answer the same request.
    public internal(set) var isShare = false
    /// Sent to the client with the response, so that it keeps using the same share; `nil` for almost all exchanges.
    var shareMark: ShareMark?
    /// The front of the path that a ware removed from the request; `nil` if none did.
    public var strippedPrefix: StrippedPrefix?
    /// The endpoint that the client should stay with; `nil` unless the service keeps its clients.
    var endpointKeep: EndpointKeep?
    /// The remaining time for the regular expressions of routes, conditions and wares.
    public var patternTime = PatternTime()
    /// Whether the request came to a forward proxy.
    public internal(set) var isForward = false
    /// Whether the request came through an intercepted tunnel of a forward proxy.
    public var isIntercepted: Bool { connection.tunnel != nil }
    /// Why the exchange's tunnel passes unread on a listener that intercepts tunnels; `nil` for anything else.
    public internal(set) var unread: UnreadReason?
    /// Whether the client's connection is encrypted.
    public var isSecure: Bool { connection.isSecure }
    /// The client's identity by its certificate, if the listener asks for one.
    public var clientIdentity: TlsClientIdentity? { connection.clientIdentity }
    /// The other end of the connection.
    public var peer: SocketAddress? { connection.peer }
    /// Whether the listener is bound to a loopback address or a Unix socket, so that only this host can reach it.
    public internal(set) var isBoundToLoopback = false
    /// The gateway's end of the connection.
    public var local: SocketAddress? { connection.local }
    /// The facts of the client's connection.
    private(set) var connection = ConnectionFacts.none
    /// Whether the messages are for this client alone, whatever their fields say: it authenticates its connection instead of its requests
    /// (NTLM, Negotiate), or may begin to. Nothing of them may be stored for others, or shared with them. RFC 9110 §3.3.
    ///
    /// For waits, response halves and postwares; request halves call `isForItsClientAlone(_:)`.
    public internal(set) var isForItsClientAlone = false
    /// The networks whose forwarding fields about the client are trusted.
    public internal(set) var trustedProxies: [IPNetwork] = []

    /// The current request, or the request as it went upstream: for waits, response halves, postwares, and after the exchange has
    /// ended. `nil` inside the request half of a ware, which has the request as its argument.
    public var request: HttpRequest? { isRequestLent ? nil : heldRequest }
    /// The request without that check; meaningless while middlewares have the request.
    var heldRequest: HttpRequest {
        @inline(__always) _read { yield requestStorage.pointee }
        @inline(__always) _modify { yield &requestStorage.pointee }
    }
    /// The request while middlewares have it.
    var lentRequest: HttpRequest {
        @inline(__always) _read { yield lentStorage.pointee }
        @inline(__always) _modify { yield &lentStorage.pointee }
    }
    /// The request's storage. Behind pointers, because reading a stored property of a class copies it, and a request passes
    /// through many functions. The driver takes the request out before other code may change it.
    private var requestStorage: UnsafeMutablePointer<HttpRequest>
    private var lentStorage: UnsafeMutablePointer<HttpRequest>
    /// The current response. The driver owns it and lends it to wares. Behind a pointer for the same reason.
    var response: HttpResponse {
        @inline(__always) _read { yield responseStorage.pointee }
        @inline(__always) _modify { yield &responseStorage.pointee }
    }
    private let responseStorage: UnsafeMutablePointer<HttpResponse>
    /// The captures of the route's path pattern, still percent-encoded.
    public internal(set) var captures: [(name: String, value: String)] = []
    /// The principals of the request: first that of the client's verified certificate, then the principals that wares found.
    public internal(set) var principals: [Principal] = []
    /// The principal that the last authenticating ware found, else that of the client's certificate; `nil` if there is neither.
    public var principal: Principal? { principals.last }
    /// The maker of the current response.
    public internal(set) var responder = Responder.upstream
    /// The result of the last cache that saw the request; `nil` without a cache.
    public var cacheResult: CacheResult?
    /// The reason why no response came from upstream.
    public internal(set) var failure: GatewayError?
    /// The record of the exchange so far.
    public internal(set) var record = ExchangeRecord()
    /// The endpoint that the request was last sent to: `host:port`.
    public internal(set) var upstreamAddress: String?
    /// The status of the final response and how the exchange ended; for `onEnd`.
    public internal(set) var finalStatus: HttpStatus?
    public internal(set) var end: ExchangeEnd?
    /// Shares the response with other exchanges; `nil` if only the client gets it. A ware that sets it keeps the previous sharer and
    /// forwards the calls to it.
    public var sharer: (any ResponseSharer)?
    /// The level of detail in metrics, in addition to route and service.
    public var measuring = ExchangeMeasuring.nothing
    /// Nothing may go upstream any more: a request that no ware answers fails there.
    public var isOffline = false
    /// Whether this is a dry run, as for `httpware explain`: nothing may be sent, written or started. A ware that would wait
    /// returns `.wait`, which is not carried out; the request counts as passed.
    public internal(set) var isDryRun = false
    /// Sends requests without a client: the driver, which clears this when it ends or takes another exchange. Not weak: one
    /// weak reference makes each retain of its object take three times as long.
    unowned(unsafe) var starter: (any BackgroundStarter)?
    /// The authority that the request must go to, if a ware put something into it for that authority only.
    var boundAuthority: BoundAuthority?
    /// The request goes where its target says, whatever its service is.
    var goesByTarget = false
    /// Time limits of this exchange that override those of the service.
    public var timeouts = ExchangeTimeouts()
    /// The endpoints that the request may go to; `nil` leaves the choice to the balancing.
    public var steering: EndpointSteering?
    /// How further endpoints are asked for the response; `nil` if they are not.
    public var hedging: Hedging?
    /// The time at which the exchange must have ended; `nil` while it has no such limit.
    public internal(set) var deadline: LoopInstant?

    /// The exchange's loop; wares use it only through `sleep` and `now`.
    let loop: EventLoop
    @usableFromInline var notebook = ExchangeNotebook()
    var endClosures: [EndClosure] = []
    var releases: [Release] = []
    var requestFilters: [any ContentFilter] = []
    var responseFilters: [any ContentFilter] = []
    /// A ware changes the request's content.
    private(set) var isRequestContentChanged = false
    private(set) var isResponseContentChanged = false
    /// The messages are captured or otherwise observed as they pass.
    var isTapped = false
    /// Effects of wares beyond the messages; `nil` for almost all exchanges.
    var intervention: Intervention?
    /// The number of the exchange's capture; `nil` if it is not captured.
    public var captureNumber: Int? {
        get { heldCapture == 0 ? nil : heldCapture }
        set { heldCapture = newValue ?? 0 }
    }
    private var heldCapture = 0

    /// The trailer fields that the client has sent so far. RFC 9110 §6.5.
    public var requestTrailers: HttpFields? { starter?.trailers.request }
    /// The trailer fields of the response so far.
    public var responseTrailers: HttpFields? { starter?.trailers.response }

    /// The number of the exchange's capture, which can be read from now on; `nil` if there is none. Without this call, an
    /// exchange is shown some time after it began.
    public func showCapture() -> Int? { starter?.showCapture() == true ? captureNumber : nil }
    /// The fields that the gateway put credentials into, recorded only if messages are observed: their values are never shown.
    public private(set) var injectedFields: [FieldName] = []
    /// Whether a ware put a credential for the origin server into the request (`noteInjection`).
    var holdsInjection = false
    /// Whether a ware put another secret of the gateway into the request (`noteSecret`).
    var holdsSecret = false
    /// The tokens that replace placeholders; `nil` without any.
    var tokenSwaps: TokenSwaps?
    private var madeId: String?

    init(loop: EventLoop) {
        self.loop = loop
        requestStorage = .allocate(capacity: 1)
        requestStorage.initialize(to: HttpRequest())
        lentStorage = .allocate(capacity: 1)
        lentStorage.initialize(to: HttpRequest())
        responseStorage = .allocate(capacity: 1)
        responseStorage.initialize(to: HttpResponse(.ok))
    }

    deinit {
        notebook.free()
        requestStorage.deinitialize(count: 1)
        requestStorage.deallocate()
        lentStorage.deinitialize(count: 1)
        lentStorage.deallocate()
        responseStorage.deinitialize(count: 1)
        responseStorage.deallocate()
    }

    /// Hands the request to the middlewares, or takes it back.
    func handRequestOver() {
        swap(&requestStorage, &lentStorage)
        isRequestLent.toggle()
    }
    /// Whether the middlewares have the request.
    private(set) var isRequestLent = false

    // MARK: Identity

    /// The exchange's own id, a UUID of version 7 (RFC 9562 §5.7), created on first use.
    public var id: String {
        get {
            if let madeId { return madeId }
            let made = ExchangeId.make(loop.wallNow())
            madeId = made
            return made
        }
        set { madeId = newValue }
    }

    /// The id, if it was created; `nil` otherwise.
    public var idIfMade: String? { madeId }

    /// Whether the peer is a trusted proxy, so that its statements about the client are accepted.
    public var isPeerTrusted: Bool {
        guard !trustedProxies.isEmpty, let peerAddress = peer?.address else { return false }
        return trustedProxies.contains { $0.contains(peerAddress) }
    }

    /// The trace that the request belongs to, once `traceparent` has set it.
    public var traceId: TraceId?

    /// The client's address: the peer's, or what a trusted proxy says it is (the right-most address in `X-Forwarded-For`
    /// that is not trusted itself).
    public var client: IPAddress? {
        guard let peerAddress = peer?.address else { return nil }
        guard isPeerTrusted else { return peerAddress }
        return ForwardedFor.client(behind: peerAddress, receivedForwardedFor, trusted: trustedProxies)
    }

    /// `X-Forwarded-For` as received, saved when the exchange began; empty unless the peer is trusted.
    var receivedForwardedFor: [String] = []

    /// The values of a response field as sent to the client, joined with commas; `nil` without the field or without a response. For
    /// handlers of the end.
    public func responseFieldValue(_ name: FieldName) -> [UInt8]? {
        guard finalStatus != nil else { return nil }
        let values = response.fields.rawValues(of: name)
        return values.isEmpty ? nil : Array(values.joined(separator: [0x2c, 0x20]))
    }

    /// Whether the messages are for this client alone, before the request goes upstream: see `isForItsClientAlone`.
    public func isForItsClientAlone(_ request: borrowing HttpRequest) -> Bool {
        isForItsClientAlone || connection.belongings != nil || request.fields.authenticateConnection
    }

    /// Tells the client's connection apart from all others, if it has authenticated itself, or may have; `nil` otherwise.
    public var clientConnection: UInt64? { connection.belongings?.number }

    // MARK: Values of wares

    /// A ware's value in the exchange, under the ware's own key.
    @inlinable
    public subscript<Key: ExchangeKey>(key: Key.Type) -> Key.Value? {
        get { notebook.value(of: key) }
        _modify { yield &notebook.page(of: key).pointee }
    }

    /// Passes the note of this type that wares of all loops keep for the service, created on first use; returns `nil` without a
    /// service. The note is valid during the call and is not retained. With `ofPassthrough` false, a service that stands for every
    /// origin that clients ask for counts as none.
    @inlinable
    public func withServiceNote<Note: ServiceNote, Result>(
        _ type: Note.Type, ofPassthrough: Bool = true, _ body: (Note) -> Result
    ) -> Result? {
        heldServiceNotes?._withUnsafeGuaranteedRef {
            ofPassthrough || !$0.isPassthrough ? $0.place(of: type)._withUnsafeGuaranteedRef(body) : nil
        }
    }

    /// Calls `body` once, when the exchange has ended: completed, cut off, or left by the client.
    public func onEnd(_ body: @escaping (Exchange) -> Void) { endClosures.append(EndClosure(body: body)) }

    /// Calls `body` once, before the client can notice the end of the exchange: before the last bytes of the response leave, or when
    /// the exchange ends in another way. For resources that the client's next request may need, also on another loop, such as a slot.
    public func beforeEnd(_ body: @escaping () -> Void) { releases.append(Release(body: body)) }

    /// Discards all handlers of the end: for a dry run.
    func dropEnd() {
        endClosures = []
        releases = []
        sharer = nil
    }

    /// A handler of the end. A struct, because a bare closure as an array's element would be wrapped in another closure.
    struct EndClosure {
        let body: (Exchange) -> Void
    }

    /// A handler that runs before the end, wrapped for the same reason.
    struct Release {
        let body: () -> Void
    }

    // MARK: The record

    /// Whether the wares' actions are observed: by the inspector, a log, or a ware of the chain.
    public var isObserved: Bool { record.trail.labels != nil }

    /// Adds a note to the decision of the ware that is running, for the record: `behind refresh 7`. With `asDecision` the note
    /// replaces the decision's name, *passed* or *aborted*: `hit`.
    ///
    /// The text is built only if the exchange is observed, and must hold no credentials. Call this before the ware answers.
    public func note(_ text: @autoclosure () -> String, asDecision: Bool = false) {
        if isObserved {
            record.trail.say(text(), isDecision: asDecision)
        } else if isDryRun {
            noteDry(text())
        }
    }

    // MARK: Content

    /// Whether tokens replace placeholders in the request.
    public var hasSwappedTokens: Bool { tokenSwaps != nil }

    /// Records that the ware put a credential into the field, so that its value is never shown.
    public func noteInjection(into field: FieldName) {
        holdsInjection = true
        if isTapped { injectedFields.append(field) }
    }

    /// Records that the ware put a secret of the gateway into the request: the request is then not sent with a method whose response
    /// contains it (`HttpMethod.returnsRequest`).
    public func noteSecret() { holdsSecret = true }

    /// Adds a filter to the request's content on its way upstream. For middlewares.
    public func filterRequestContent(with filter: any ContentFilter) { requestFilters.append(filter) }

    /// Adds a filter to the response's content on its way downstream. For postwares and response halves.
    public func filterResponseContent(with filter: any ContentFilter) { responseFilters.append(filter) }

    /// Declares that the ware changes the request's content: digests in its trailers are dropped. RFC 9530 §2.
    public func requestContentChanges() { isRequestContentChanged = true }

    /// Declares the same for the response's content.
    public func responseContentChanges() { isResponseContentChanged = true }

    /// The request's content received so far, and whether it is complete. For wares whose `contentNeed` is `beginning` or `ifWhole`,
    /// and for gates that need content, while they run.
    public var beginningOfContent: (bytes: [UInt8], isWhole: Bool) { starter?.contentSoFar ?? ([], true) }

    // MARK: Time

    /// The loop's time.
    public var now: LoopInstant { loop.now }

    /// Reads the loop's clock again, for use after long work: `now` stands still in a callback of the loop.
    package func readClock() -> LoopInstant { loop.tick() }

    /// The wall clock's time, read at most once in a callback of the loop.
    public var wallNow: WallTime { loop.turnWallNow }

    /// Identifies the loop: for values that are kept per loop.
    public var loopIdentity: ObjectIdentifier { ObjectIdentifier(loop) }

    /// Waits on the loop's timers. For use inside a `.wait`.
    public func sleep(for duration: Duration) async throws { try await loop.sleep(for: duration) }

    /// Empties the exchange and keeps its memory, for the connection's next one.
    func reset(for connection: consuming ConnectionFacts = .none) {
        let principal = connection.principal
        self.connection = connection
        route = nil
        serviceNotes = nil
        if !captures.isEmpty { captures.removeAll(keepingCapacity: true) }
        if !principals.isEmpty { principals.removeAll(keepingCapacity: true) }
        if let principal { principals.append(principal) }
        responder = .upstream
        cacheResult = nil
        failure = nil
        unread = nil
        record.reset()
        upstreamAddress = nil
        finalStatus = nil
        end = nil
        timeouts = ExchangeTimeouts()
        deadline = nil
        isOffline = false
        isForItsClientAlone = false
        measuring = .nothing
        if hedging != nil { hedging = nil }
        if steering != nil { steering = nil }
        if boundAuthority != nil { boundAuthority = nil }
        if sharer != nil { sharer = nil }
        notebook.empty()
        if !endClosures.isEmpty { endClosures.removeAll(keepingCapacity: true) }
        if !releases.isEmpty { releases.removeAll(keepingCapacity: true) }
        if !requestFilters.isEmpty { requestFilters.removeAll(keepingCapacity: true) }
        if !responseFilters.isEmpty { responseFilters.removeAll(keepingCapacity: true) }
        isRequestContentChanged = false
        isResponseContentChanged = false
        if !receivedForwardedFor.isEmpty { receivedForwardedFor.removeAll(keepingCapacity: true) }
        if tokenSwaps != nil { tokenSwaps = nil }
        holdsInjection = false
        holdsSecret = false
        if isTapped {
            isTapped = false
            injectedFields = []
            heldCapture = 0
        }
        if intervention != nil { intervention = nil }
        isShare = false
        patternTime = PatternTime()
        if shareMark != nil { shareMark = nil }
        if endpointKeep != nil { endpointKeep = nil }
        if strippedPrefix != nil { strippedPrefix = nil }
        madeId = nil
        traceId = nil
    }
}

/// Shares an exchange's response with the clients of other exchanges. Called on the loop of the exchange.
public protocol ResponseSharer: AnyObject {
    /// Whether the response continues without the client: read when the client leaves, and from then on with each piece of content.
    /// An implementation that returns true must bound the cost.
    var outlivesClient: Bool { get }
    /// Whether one of the other clients takes the content as fast as it comes. The exchange then does not wait for its own client;
    /// if that has left, it waits while the result is false. By default, the same as `outlivesClient`.
    var keepsPace: Bool { get }
    /// Calls `wake` when another client takes more content, or leaves: once or more often, on any thread. Called when `keepsPace` is
    /// false. If the exchange `isAlone`, without its own client, it takes no more content until then; else its client may take some first.
    func whenPaceKept(isAlone: Bool, _ wake: @escaping @Sendable () -> Void)
    /// The exchange has ended. Called once.
    func exchangeEnded()
}

extension ResponseSharer {
    public var keepsPace: Bool { outlivesClient }
    public func whenPaceKept(isAlone: Bool, _ wake: @escaping @Sendable () -> Void) { wake() }
}

/// Names a ware's value in an exchange: a type private to the ware's file.
public protocol ExchangeKey {
    associatedtype Value
}

/// The level of detail that metrics record about an exchange; each case includes those before it.
public enum ExchangeMeasuring: Sendable {
    case nothing
    /// The method and the class of the status.
    case kind
    /// The decision of each ware.
    case wares
}

/// Time limits of an exchange; `nil` keeps the service's limit.
public struct ExchangeTimeouts: Sendable, Equatable {
    /// Until the connection is established.
    public var connect: Duration?
    /// Until the response's head: from the end of the request, or from its last progress while the origin server does not take it.
    public var response: Duration?
    /// Time without progress.
    public var idle: Duration?
    /// For the whole exchange.
    public var total: Duration?
    /// For each try, from sending the request upstream to the response's head; within the limits above.
    public var perTry: Duration?
    /// The status of the response when the origin server took too long; `nil` means 504.
    public var status: HttpStatus?

    public init(
        connect: Duration? = nil, response: Duration? = nil, idle: Duration? = nil, total: Duration? = nil,
        perTry: Duration? = nil, status: HttpStatus? = nil
    ) {
        self.connect = connect
        self.response = response
        self.idle = idle
        self.total = total
        self.perTry = perTry
        self.status = status
    }
}

/// The chain of addresses in `X-Forwarded-For`.
enum ForwardedFor {
    /// The right-most address that is not a trusted proxy's. If all are, or if a member is invalid, the last address read.
    static func client(behind peer: IPAddress, _ members: [String], trusted: [IPNetwork]) -> IPAddress {
        var client = peer
        for member in members.reversed() {
            guard let address = address(member) else { return client }
            client = address.unmapped
            guard trusted.contains(where: { $0.contains(address) }) else { return client }
        }
        return client
    }
}

extension ForwardedFor {
    /// Whether each member is an address, from the right up to the first address that is not a trusted proxy's.
    static func isReadable(_ members: [String], trusted: [IPNetwork]) -> Bool {
        for member in members.reversed() {
            guard let address = address(member) else { return false }
            guard trusted.contains(where: { $0.contains(address) }) else { return true }
        }
        return true
    }

    /// The address that a member names, with or without a port; `nil` if it is invalid.
    static func address(_ member: String) -> IPAddress? {
        IPAddress(member) ?? SocketAddress(member, defaultPort: 0)?.address
    }
}

/// Makes ids that sort by time.
enum ExchangeId {
    static func make(_ time: WallTime) -> String {
        var random = ReplaceableRandom()
        let milliseconds = UInt64(truncatingIfNeeded: time.seconds) &* 1000 &+ UInt64(time.nanoseconds) / 1_000_000
        let high = milliseconds << 16 | 0x7000 | random.next() & 0x0fff
        let low = random.next() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
        return String(unsafeUninitializedCapacity: 36) { text in
            var index = 0
            for nibble in 0..<32 {
                if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 {
                    text[index] = 0x2d
                    index &+= 1
                }
                let word = nibble < 16 ? high : low
                let digit = UInt8(truncatingIfNeeded: word >> UInt64(60 &- nibble % 16 * 4)) & 0x0f
                text[index] = digit < 10 ? digit &+ 0x30 : digit &+ 0x57
                index &+= 1
            }
            return 36
        }
    }
}
