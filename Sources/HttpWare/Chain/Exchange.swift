/// One request and its final response, as wares see it: who asks, where it goes, what was decided, what wares remember.
///
/// It stays on its loop, and ends exactly once.
public final class Exchange {
    /// The listener's name; `client` for a client in process.
    public internal(set) var listener = ""
    /// The route's name; `nil` without a route.
    public internal(set) var route: String?
    /// The service's name; `nil` without one.
    public var service: String? { serviceNotes?.name }
    /// What wares of all loops remember of the service; `nil` without one.
    public internal(set) var serviceNotes: ServiceNotes? {
        didSet { heldServiceNotes = serviceNotes.map { Unmanaged.passUnretained($0) } }
    }
    /// The same, which is read without retaining it.
    @usableFromInline private(set) var heldServiceNotes: Unmanaged<ServiceNotes>?
    /// Whether the service is one of several that share the requests of the route: others may answer the same request.
    public internal(set) var isShare = false
    /// What the client is given with the response, so that it stays with its share; `nil` for nearly all.
    var shareMark: ShareMark?
    /// What is left to the regular expressions of routes, conditions and wares.
    public var patternTime = PatternTime()
    /// Whether the request came to a forward proxy.
    public internal(set) var isForward = false
    /// Whether the request came in a tunnel of a forward proxy that the gateway reads.
    public var isIntercepted: Bool { connection.tunnel != nil }
    /// Whether the client's connection is encrypted.
    public var isSecure: Bool { connection.isSecure }
    /// Who the client is by its certificate, where the listener asks for one.
    public var clientIdentity: TlsClientIdentity? { connection.clientIdentity }
    /// The other end of the connection.
    public var peer: SocketAddress? { connection.peer }
    /// Whether the listener is bound to a loopback address or a Unix socket: only this host reaches it.
    public internal(set) var isBoundToLoopback = false
    /// Our end of the connection.
    public var local: SocketAddress? { connection.local }
    /// What is known of the client's connection.
    private(set) var connection = ConnectionFacts.none
    /// The networks whose word about a request's client is taken.
    public internal(set) var trustedProxies: [IPNetwork] = []

    /// The request as it is, or as it went upstream: in waits, response halves, postwares, and when the exchange has ended. `nil`
    /// inside the request half of a ware, whose argument is the request.
    public var request: HttpRequest? { isRequestLent ? nil : heldRequest }
    /// The same; of no meaning while middlewares have the request.
    var heldRequest: HttpRequest {
        @inline(__always) _read { yield requestStorage.pointee }
        @inline(__always) _modify { yield &requestStorage.pointee }
    }
    /// The request while middlewares have it.
    var lentRequest: HttpRequest {
        @inline(__always) _read { yield lentStorage.pointee }
        @inline(__always) _modify { yield &lentStorage.pointee }
    }
    /// Where the request is. Behind pointers, because to read a stored property of a class copies it, and a request goes
    /// through many hands; the driver takes the request out before anybody else may change it.
    private var requestStorage: UnsafeMutablePointer<HttpRequest>
    private var lentStorage: UnsafeMutablePointer<HttpRequest>
    /// The response at hand: the driver's, which lends it to wares. Behind a pointer for the same reason.
    var response: HttpResponse {
        @inline(__always) _read { yield responseStorage.pointee }
        @inline(__always) _modify { yield &responseStorage.pointee }
    }
    private let responseStorage: UnsafeMutablePointer<HttpResponse>
    /// What the route's path pattern captured, still percent-encoded.
    public internal(set) var captures: [(name: String, value: String)] = []
    /// The principals of the request: that of the client's certificate, verified in the handshake, then those that wares found.
    public internal(set) var principals: [Principal] = []
    /// The principal that the last authenticating ware found, else that of the client's certificate; `nil` if there is neither.
    public var principal: Principal? { principals.last }
    /// Who made the response at hand.
    public internal(set) var responder = Responder.upstream
    /// What the last cache that saw the request did with it; `nil` where none did.
    public var cacheResult: CacheResult?
    /// Why there was no response from upstream.
    public internal(set) var failure: GatewayError?
    /// What happened so far.
    public internal(set) var record = ExchangeRecord()
    /// The endpoint that the request was last sent to: `host:port`.
    public internal(set) var upstreamAddress: String?
    /// The status of the final response and how the exchange ended; for `onEnd`.
    public internal(set) var finalStatus: HttpStatus?
    public internal(set) var end: ExchangeEnd?
    /// Lets others have the response, too; `nil` where it is the client's alone. A ware that sets it keeps the one that was there,
    /// and hands on what it is told.
    public var sharer: (any ResponseSharer)?
    /// What metrics tell apart, beside its route and service.
    public var measuring = ExchangeMeasuring.nothing
    /// Nothing goes upstream any more: what no ware answers fails there.
    public var isOffline = false
    /// Whether only the course of a request is asked for, as by `httpware explain`: nothing may be sent, written or begun. A ware
    /// that would wait returns `.wait`, which is not carried out; the request counts as passed.
    public internal(set) var isDryRun = false
    /// Who sends requests without a client: the driver, which takes itself away when it goes or has another exchange. Not weak: one
    /// weak reference makes each retain of its object take three times as long.
    unowned(unsafe) var starter: (any BackgroundStarter)?
    /// Where the request has to go, if a ware put something into it that is for one place only.
    var boundAuthority: BoundAuthority?
    /// Whatever the service is, the request goes where its target says.
    var goesByTarget = false
    /// Time limits of this exchange in place of the service's.
    public var timeouts = ExchangeTimeouts()
    /// Which endpoints the request may go to; `nil` leaves that to the balancing.
    public var steering: EndpointSteering?
    /// How further endpoints are asked for the response; `nil` if none are.
    public var hedging: Hedging?
    /// When the exchange has taken as long as it may; `nil` where it has no such limit so far.
    public internal(set) var deadline: LoopInstant?

    /// The loop; wares have no business with it but through `sleep` and `now`.
    let loop: EventLoop
    @usableFromInline var notebook = ExchangeNotebook()
    var endClosures: [EndClosure] = []
    var releases: [Release] = []
    var requestFilters: [any ContentFilter] = []
    var responseFilters: [any ContentFilter] = []
    /// A ware changes the content.
    private(set) var isRequestContentChanged = false
    private(set) var isResponseContentChanged = false
    /// Somebody sees what passes.
    var isTapped = false
    /// What wares do beyond the messages; `nil` for nearly all.
    var intervention: Intervention?
    /// The number of its capture; `nil` if it is not captured.
    public var captureNumber: Int? {
        get { heldCapture == 0 ? nil : heldCapture }
        set { heldCapture = newValue ?? 0 }
    }
    private var heldCapture = 0
    /// The fields that the gateway put credentials into, if somebody sees what passes: their values are shown to nobody.
    public private(set) var injectedFields: [FieldName] = []
    /// The tokens that take the place of placeholders; `nil` where none does.
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

    /// Gives the request to the middlewares, or takes it back.
    func handRequestOver() {
        swap(&requestStorage, &lentStorage)
        isRequestLent.toggle()
    }
    /// The middlewares have the request.
    private(set) var isRequestLent = false

    // MARK: Identity

    /// The exchange's own id, a UUID of version 7 (RFC 9562 §5.7), made when first asked for.
    public var id: String {
        get {
            if let madeId { return madeId }
            let made = ExchangeId.make(loop.wallNow())
            madeId = made
            return made
        }
        set { madeId = newValue }
    }

    /// The id, if anybody asked for it so far.
    public var idIfMade: String? { madeId }

    /// Whether what the peer says about the client is believed.
    public var isPeerTrusted: Bool {
        guard !trustedProxies.isEmpty, let peerAddress = peer?.address else { return false }
        return trustedProxies.contains { $0.contains(peerAddress) }
    }

    /// The trace that the request is part of, once `traceparent` knows it.
    public var traceId: TraceId?

    /// The client's address: the peer's, or what a trusted proxy says it is (the right-most address in `X-Forwarded-For`
    /// that is not trusted itself).
    public var client: IPAddress? {
        guard let peerAddress = peer?.address else { return nil }
        guard isPeerTrusted else { return peerAddress }
        return ForwardedFor.client(behind: peerAddress, receivedForwardedFor, trusted: trustedProxies)
    }

    /// `X-Forwarded-For` as received, kept when the exchange began; empty unless the peer is trusted.
    var receivedForwardedFor: [String] = []

    /// The values of a field of the response as it went to the client, behind commas; `nil` without the field, or without a response. For
    /// those who are told of the end.
    public func responseFieldValue(_ name: FieldName) -> [UInt8]? {
        guard finalStatus != nil else { return nil }
        let values = response.fields.rawValues(of: name)
        return values.isEmpty ? nil : Array(values.joined(separator: [0x2c, 0x20]))
    }

    // MARK: What wares remember

    /// What a ware remembers in the exchange, under its own key.
    @inlinable
    public subscript<Key: ExchangeKey>(key: Key.Type) -> Key.Value? {
        get { notebook.value(of: key) }
        _modify { yield &notebook.page(of: key).pointee }
    }

    /// Gives what wares of all loops remember of the service under that type, made when it is first asked for; `nil` without a
    /// service. It is valid during the call, and is not retained for it. What stands for every origin that clients ask for can be
    /// passed by.
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

    /// Calls `body` once, before the client can know that the exchange is over: before the last bytes of the response leave, or when the
    /// exchange ends in another way. For what the client's next request may need, on another loop too, such as a slot.
    public func beforeEnd(_ body: @escaping () -> Void) { releases.append(Release(body: body)) }

    /// Nobody is called at the end of what wares began: for a dry run.
    func dropEnd() {
        endClosures = []
        releases = []
        sharer = nil
    }

    /// What is called when the exchange has ended: as an array's element, a closure alone would be put into another one.
    struct EndClosure {
        let body: (Exchange) -> Void
    }

    /// The same for what is called before the end.
    struct Release {
        let body: () -> Void
    }

    // MARK: The record

    /// Whether somebody observes what the wares do: the inspector, a log, a ware of the chain.
    public var isObserved: Bool { record.trail.labels != nil }

    /// Says more about what the ware that is at work decides, for the record: `behind refresh 7`. With `asDecision` it names
    /// the decision, in place of *passed* or *aborted*: `hit`.
    ///
    /// The text is made only where somebody observes; it holds no credentials. To be called before the ware answers.
    public func note(_ text: @autoclosure () -> String, asDecision: Bool = false) {
        if isObserved { record.trail.say(text(), isDecision: asDecision) }
    }

    // MARK: Content

    /// Whether tokens took the place of placeholders in the request.
    public var hasSwappedTokens: Bool { tokenSwaps != nil }

    /// Says that the ware put a credential into that field, so that its value is shown to nobody.
    public func noteInjection(into field: FieldName) { if isTapped { injectedFields.append(field) } }

    /// Lets the request's content pass through a filter on its way upstream. For middlewares.
    public func filterRequestContent(with filter: any ContentFilter) { requestFilters.append(filter) }

    /// Lets the response's content pass through a filter on its way downstream. For postwares and response halves.
    public func filterResponseContent(with filter: any ContentFilter) { responseFilters.append(filter) }

    /// Says that the ware changes the request's content: digests in its trailers are dropped. RFC 9530 §2.
    public func requestContentChanges() { isRequestContentChanged = true }

    /// The same for the response's content.
    public func responseContentChanges() { isResponseContentChanged = true }

    /// The request's content as far as it has come, and whether that is all. For wares whose `contentNeed` is `beginning` or `ifWhole`,
    /// and for gates that need it, while they are asked.
    public var beginningOfContent: (bytes: [UInt8], isWhole: Bool) { starter?.contentSoFar ?? ([], true) }

    // MARK: Time

    /// The loop's time.
    public var now: LoopInstant { loop.now }

    /// The wall clock's time, read at most once in a callback of the loop.
    public var wallNow: WallTime { loop.turnWallNow }

    /// Tells the loops apart: for what is kept once a loop.
    public var loopIdentity: ObjectIdentifier { ObjectIdentifier(loop) }

    /// Waits on the loop's timers: for what is awaited in a `.wait`.
    public func sleep(for duration: Duration) async throws { try await loop.sleep(for: duration) }

    /// Empties the exchange and keeps its memory, for one of this connection.
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
        record.reset()
        upstreamAddress = nil
        finalStatus = nil
        end = nil
        timeouts = ExchangeTimeouts()
        deadline = nil
        isOffline = false
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
        if isTapped {
            isTapped = false
            injectedFields = []
            heldCapture = 0
        }
        if intervention != nil { intervention = nil }
        isShare = false
        patternTime = PatternTime()
        if shareMark != nil { shareMark = nil }
        madeId = nil
        traceId = nil
    }
}

/// Lets others beside its client have an exchange's response. Called on the loop of the exchange.
public protocol ResponseSharer: AnyObject {
    /// Whether the response goes on without waiting for the client: asked when that leaves, or takes its content slowly. Whoever
    /// says so bounds what that costs.
    var outlivesClient: Bool { get }
    /// The exchange has ended. Called once.
    func exchangeEnded()
}

/// Names what a ware remembers in an exchange: a type private to the ware's file.
public protocol ExchangeKey {
    associatedtype Value
}

/// What metrics tell apart of an exchange; each includes those before it.
public enum ExchangeMeasuring: Sendable {
    case nothing
    /// Its method and the class of its status.
    case kind
    /// What each ware did.
    case wares
}

/// Time limits; `nil` leaves the service's.
public struct ExchangeTimeouts: Sendable, Equatable {
    /// Until a connection is made.
    public var connect: Duration?
    /// From the request's end, or the last progress of one that the origin server does not take, to the response's head.
    public var response: Duration?
    /// Without progress.
    public var idle: Duration?
    /// For the whole exchange.
    public var total: Duration?
    /// From when a request goes upstream to the head of its response, each time that it does; within the limits above.
    public var perTry: Duration?
    /// What the client is answered where the origin server took too long; `nil` is 504.
    public var status: HttpStatus?

    public init() {}
}

/// The chain of addresses in `X-Forwarded-For`.
enum ForwardedFor {
    /// The right-most address that is not a trusted proxy's; the last one read when all are, or when one is no address.
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
    /// Whether each member is an address, from the right up to the first that is not a trusted proxy's.
    static func isReadable(_ members: [String], trusted: [IPNetwork]) -> Bool {
        for member in members.reversed() {
            guard let address = address(member) else { return false }
            guard trusted.contains(where: { $0.contains(address) }) else { return true }
        }
        return true
    }

    /// The address that a member names, with or without a port; `nil` if it is none.
    static func address(_ member: String) -> IPAddress? {
        IPAddress(member) ?? SocketAddress(member, defaultPort: 0)?.address
    }
}

/// Makes ids that sort by time.
enum ExchangeId {
    static func make(_ time: WallTime) -> String {
        var random = SystemRandomNumberGenerator()
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
