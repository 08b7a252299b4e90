public import Credentials
public import HttpWare
import Synchronization

/// Holds requests during a token refresh, an outage or maintenance, and releases them in order afterwards.
///
/// All loops share one instance: its mutable state is in a `HoldQueue` and behind a mutex.
public final class Accumulate: Middleware, Postware, CredentialUser, HoldGate {
    /// The condition under which requests are held.
    public enum Reason: String, OptionWord {
        /// While the credential has no valid token and one is being requested.
        case credentialRefreshing
        /// While the origin server cannot be reached.
        case upstreamDown
        /// Between two calls of the admin listener.
        case manual
    }

    /// The condition under which requests are held.
    public let reason: Reason
    /// The credential whose refresh holds requests.
    public let credential: Credential?
    /// The limits of waiting requests.
    public let limits: HoldLimits
    /// The status of refusals.
    public let overflow: HttpStatus

    private let releaseRate: Rate?
    /// One gate for each service if the reason is `upstreamDown`, otherwise one for all.
    private let queues = Mutex<[ObjectIdentifier?: Gate]>([:])

    /// A queue, and the service whose state opens and closes it.
    private final class Gate: Sendable {
        let queue: HoldQueue
        /// The reachability of the service that closes the gate. It is retained, so that its address, the key of the queue, is
        /// never reused by another service.
        private let reachability: ServiceReachability?
        private let watch: ServiceReachability.Watch?

        init(_ queue: HoldQueue, _ reachability: ServiceReachability?) {
            self.queue = queue
            self.reachability = reachability
            watch = reachability?.watch { queue.setClosed($0) }
        }
    }

    /// The maximum content of a request that is kept, so that it can be sent again once the origin server is back.
    private static let mostKept = ByteCount.mebibytes(1)

    public var credentialUse: CredentialUse { .holds }
    public var holdsState: Bool { true }
    public var mayReplay: Bool { reason == .upstreamDown }
    public var contentNeed: ContentNeed {
        reason == .upstreamDown ? .kept(upTo: min(limits.maxBytes, Accumulate.mostKept).bytes) : .none
    }

    public init(
        while reason: Reason, credential: Credential? = nil, limits: HoldLimits = HoldLimits(),
        releaseRate: Rate? = nil,
        overflow: HttpStatus = .serviceUnavailable
    ) {
        self.reason = reason
        self.credential = credential
        self.limits = limits
        self.releaseRate = releaseRate
        self.overflow = overflow
    }

    private func gate(_ reachability: ServiceReachability? = nil) -> Gate {
        queues.withLock { queues in
            let key = reachability.map { ObjectIdentifier($0) }
            if let gate = queues[key] { return gate }
            // A reload leaves gates of former services behind, which no request uses again.
            if queues.count >= Accumulate.mostIdle { queues = queues.filter { $0.value.queue.count > 0 } }
            let gate = Gate(HoldQueue(limits, releaseRate: releaseRate), reachability)
            queues[key] = gate
            return gate
        }
    }

    /// The maximum number of empty queues that are kept.
    private static let mostIdle = 64

    /// The gate at which the exchange waits; `nil` if there is nothing to wait for: no service, or a different one each time.
    private func gate(of exchange: Exchange) -> Gate? {
        guard reason == .upstreamDown else { return gate() }
        guard let notes = exchange.serviceNotes, !notes.isPassthrough else { return nil }
        return gate(notes.reachability)
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if reason == .credentialRefreshing { return handleRefresh(request, exchange) }
        guard let gate = gate(of: exchange) else { return .pass }
        switch gate.queue.takePlace(bytes: size(of: request), due: due(exchange)) {
        case .open: return .pass
        case .overflow: return .abort(with: refusal("too many requests are held"))
        case .held(let place):
            return .wait { _, exchange in
                if try await self.wait(place, gate, exchange) { return .pass }
                return .abort(with: self.refusal("it was held for too long"))
            }
        }
    }

    private func size(of request: HttpRequest) -> Int {
        TokenHold.size(of: request, kept: reason == .upstreamDown ? Accumulate.mostKept.bytes : 0)
    }

    /// The deadline of the request's waits: all its waits together have the time limit.
    private func due(_ exchange: Exchange) -> LoopInstant {
        exchange.now + (limits.timeout - (exchange[Held.self]?.time ?? .zero))
    }

    /// Waits for the gate to open and for the request's turn. Returns whether both came in time.
    private func wait(_ place: HoldQueue.Place, _ gate: Gate, _ exchange: Exchange) async throws -> Bool {
        let began = exchange.now
        let hasOpened = try await gate.queue.wait(place, in: exchange)
        let held = exchange.now - began
        var holds = exchange[Held.self] ?? Holds()
        holds.time += held
        exchange[Held.self] = holds
        exchange.note("held \(held.milliseconds)ms")
        return hasOpened
    }

    private func handleRefresh(_ request: HttpRequest, _ exchange: Exchange) -> Verdict {
        let wall = exchange.wallNow
        guard let credential, credential.isHolding(at: wall) else { return .pass }
        let size = TokenHold.size(of: request, kept: 0)
        let queue = gate().queue
        let turn = queue.expect(bytes: size, due: exchange.now + limits.timeout)
        // Turns are assigned when the refresh releases the requests, because their own loops may be late.
        switch credential.takePlace(bytes: size, limits: limits, at: wall, ended: { _ in queue.letGo(turn) }) {
        case .ready:
            queue.leave(turn)
            return .pass
        case .refused(let failure):
            queue.leave(turn)
            return .abort(with: refusal(failure.reason))
        case .held(let place):
            return .wait { _, exchange in
                defer { queue.leave(turn) }
                var isInTime = true
                if case .timedOut = try await place.outcome() { isInTime = false }
                exchange.note(TokenHold.words(place, exchange))
                if isInTime { isInTime = try await queue.wait(turn, in: exchange) }
                if isInTime { return .pass }
                credential.noteTimeout()
                return .abort(with: self.refusal("it was held for too long"))
            }
        }
    }

    private func refusal(_ reason: String) -> HttpResponse {
        var response = HttpResponse.problem(overflow, "the request was refused: \(reason)")
        response.fields.set(.retryAfter, to: 1)
        return response
    }

    // MARK: The origin server

    /// A request that detects the outage is held like later ones, and sent again when the origin server is back.
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard reason == .upstreamDown, let failure = exchange.failure, failure.side == .upstream,
            let gate = gate(of: exchange), let request = exchange.request
        else { return .pass }
        guard failure.fault.isUnreachable else { return answerToReset(failure, request, exchange) }
        switch gate.queue.takePlace(bytes: size(of: request), due: due(exchange)) {
        // The origin server is back already.
        case .open: return .replay(after: Accumulate.pause)
        case .overflow: return .replace(with: refusal("too many requests are held"))
        case .held(let place):
            return .wait { _, exchange in
                if try await self.wait(place, gate, exchange) { return .replay(after: .zero) }
                return .replace(with: self.refusal("it was held for too long"))
            }
        }
    }

    /// Handles a connection that the server closed: sends the request again once, to find out whether a server is left.
    private func answerToReset(_ failure: GatewayError, _ request: HttpRequest, _ exchange: Exchange) -> Answer {
        guard failure.fault == .connectionTerminated, failure.mayRetry,
            request.method.isIdempotent || failure.isUnprocessed
        else { return .pass }
        var holds = exchange[Held.self] ?? Holds()
        guard !holds.isResent else { return .pass }
        holds.isResent = true
        exchange[Held.self] = holds
        return .replay(after: Accumulate.pause)
    }

    /// Long enough for a server that is stopping to be gone.
    private static let pause = Duration.milliseconds(20)

    /// The memory of a request's holds.
    private enum Held: ExchangeKey { typealias Value = Holds }
    private struct Holds {
        /// How long the request was held so far.
        var time = Duration.zero
        /// Whether the request was sent again after its connection was closed.
        var isResent = false
    }

    // MARK: Manual control

    public var isManual: Bool { reason == .manual }
    public var isClosed: Bool { queues.withLock { $0.values.contains { $0.queue.isClosed } } }
    public var heldCount: Int { queues.withLock { $0.values.reduce(0) { $0 + $1.queue.count } } }
    public func setClosed(_ isClosed: Bool) { gate().queue.setClosed(isClosed) }
}

extension Accumulate: ConfigurableWare {
    public static let name: WareName = "accumulate"
    public static let about = WareAbout(
        "Holds requests during a token refresh, an outage or maintenance, and releases them in order afterwards.",
        source: "RFC 9110 §15.6.4",
        example: #"""
            - accumulate: { while: manual, releaseRate: 100/s }
            - accumulate: { while: upstreamDown, timeout: 30s }
            """#,
        details: #"""
            `credentialRefreshing` holds requests while the credential has no valid token and one is being requested. It
            is for routes without `tokenRefresh`, which holds requests itself. `upstreamDown` holds requests while no
            endpoint of the service accepts connections, or all of them fail their health checks. The request that
            detects this is held as well, if no more than 1 MiB of its content has arrived. The ware makes a test
            connection every 50 ms to 500 ms, and releases the requests when an endpoint is back. `manual` holds
            requests between `POST /v1/holds/LABEL/close` and `POST /v1/holds/LABEL/open` of the admin listener. LABEL
            is the label of the entry, or else `accumulate`.

            With `releaseRate` the held requests are released one after the other, while new requests pass. If there is
            no room for a request, or if it waits longer than `timeout`, its turn included, it is answered with
            `overflow` and `Retry-After`.
            """#,
        otherNames: ["hold", "pause", "maintenance"])

    public convenience init(options: inout OptionsReader) {
        var reason: Reason?
        var credential: Credential?
        let usual = Accumulate(while: .manual)
        var limits = usual.limits
        var rate: Rate?
        var overflow = usual.overflow
        options.read(
            "while", into: &reason,
            doc:
                "condition: credentialRefreshing (a token refresh), upstreamDown (an outage), or manual (an operator holds and releases)"
        )
        options.require("while")
        options.read(
            "credential", into: &credential, of: "credentials",
            doc: "the credential whose refresh holds requests; only for credentialRefreshing")
        limits.read(&options)
        options.read(
            "releaseRate", into: &rate, in: Rate(1, per: .hour)...Rate(1_000_000, per: .second),
            doc: "rate at which held requests are released; by default all at once")
        options.read(
            "overflow", into: &overflow, in: HttpStatus.errors,
            doc: "status of the response if a request cannot be held, or waits too long; it also has Retry-After")
        options.require("credential", with: "while", reason, is: .credentialRefreshing)
        options.only("credential", with: "while", reason, is: .credentialRefreshing)
        self.init(
            while: reason ?? .manual, credential: credential, limits: limits, releaseRate: rate, overflow: overflow)
    }
}
