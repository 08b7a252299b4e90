public import Credentials
public import HttpWare
import Synchronization

/// Holds requests for a while and lets them go in the order of coming: while a credential is refreshed, while the origin server cannot
/// be reached, or while somebody says so.
///
/// | option        | type                     | default  | allowed |
/// |---------------|--------------------------|----------|---------|
/// | `while`       | `credentialRefreshing`, `upstreamDown`, `manual` | required | |
/// | `credential`  | name under `credentials` |          | with `credentialRefreshing` |
/// | `max`         | whole number             | `500`    |         |
/// | `maxBytes`    | byte count               | `64MiB`  |         |
/// | `timeout`     | duration                 | `10s`    |         |
/// | `release`     | `fifo`                   | `fifo`   |         |
/// | `releaseRate` | rate                     |          | all at once without |
/// | `overflow`    | status                   | `503`    | 400 … 599 |
///
/// Shared by all loops: what changes is in a `HoldQueue` and behind a mutex.
public final class Accumulate: Middleware, CredentialUser, HoldGate, ExchangeObserver {
    /// When requests are held.
    public enum Reason: String, OptionWord {
        case credentialRefreshing, upstreamDown, manual
    }

    /// In which order they go.
    public enum Release: String, OptionWord {
        case fifo
    }

    public let reason: Reason
    public let credential: Credential?
    public let limits: HoldLimits
    /// What those are answered who find no room, or wait too long.
    public let overflow: HttpStatus

    private let releaseRate: Rate?
    /// One for each service where it is about services, one in all else.
    private let queues = Mutex<[String: Gate]>([:])

    /// A queue, and when the origin server behind it was last tried.
    private final class Gate: Sendable {
        let queue: HoldQueue
        let lastProbe = Mutex(LoopInstant(nanoseconds: .min))

        init(_ queue: HoldQueue) { self.queue = queue }

        /// Whether the request at hand is the one that tries whether the origin server is back.
        func takesProbe(at now: LoopInstant) -> Bool {
            lastProbe.withLock { last in
                guard now >= last + Accumulate.probeInterval else { return false }
                last = now
                return true
            }
        }
    }

    /// While the origin server is down one request in this time finds out whether it still is.
    private static let probeInterval = Duration.seconds(1)

    public var credentialUse: CredentialUse { .holds }
    public var holdsState: Bool { true }

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

    private func gate(_ service: String) -> Gate {
        queues.withLock { queues in
            if let gate = queues[service] { return gate }
            let gate = Gate(HoldQueue(limits, releaseRate: releaseRate))
            queues[service] = gate
            return gate
        }
    }

    private func gate(of exchange: Exchange) -> Gate {
        gate(reason == .upstreamDown ? exchange.service ?? "" : "")
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if reason == .credentialRefreshing { return handleRefresh(request, exchange) }
        let gate = gate(of: exchange)
        if reason == .upstreamDown, gate.queue.isClosed, gate.takesProbe(at: exchange.now) {
            exchange.note("finds out whether the origin server is back")
            return .pass
        }
        switch gate.queue.enter(bytes: TokenHold.size(of: request, kept: 0), at: exchange.now) {
        case .open: return .pass
        case .wait(let turn):
            return .wait { _, exchange in
                try await exchange.sleep(for: turn)
                exchange.note("held \(turn.milliseconds)ms for its turn")
                return .pass
            }
        case .overflow: return refuse("too many requests are held")
        case .held(let place): return .wait { _, exchange in try await self.wait(place, gate, exchange) }
        }
    }

    private func wait(_ first: HoldQueue.Place, _ gate: Gate, _ exchange: Exchange) async throws -> Verdict {
        let began = exchange.now
        var place = first
        while true {
            let left = limits.timeout - (exchange.now - began)
            let patience = reason == .upstreamDown ? min(left, Accumulate.probeInterval) : left
            let hasOpened = try await gate.queue.wait(place, for: patience)
            if hasOpened {
                let turn = gate.queue.turn(at: exchange.now)
                if turn > .zero { try await exchange.sleep(for: turn) }
                exchange.note("held \((exchange.now - began).milliseconds)ms")
                return .pass
            }
            guard exchange.now - began < limits.timeout else { break }
            if gate.takesProbe(at: exchange.now) {
                exchange.note(
                    "held \((exchange.now - began).milliseconds)ms, finds out whether the origin server is back")
                return .pass
            }
            switch gate.queue.enter(bytes: first.bytes, at: exchange.now) {
            case .open, .wait: return .pass
            case .overflow: return refuse("too many requests are held")
            case .held(let next): place = next
            }
        }
        exchange.note("held \((exchange.now - began).milliseconds)ms")
        return refuse("it was held for too long")
    }

    private func handleRefresh(_ request: HttpRequest, _ exchange: Exchange) -> Verdict {
        let wall = exchange.wallNow
        guard let credential, credential.isHolding(at: wall) else { return .pass }
        switch credential.enter(bytes: TokenHold.size(of: request, kept: 0), limits: limits, at: wall) {
        case .ready: return .pass
        case .refused(let failure): return refuse(failure.reason)
        case .held(let place):
            return .wait { _, exchange in
                let outcome = try await place.outcome()
                exchange.note(TokenHold.words(place, exchange))
                if case .timedOut = outcome {
                    credential.noteTimeout()
                    return self.refuse("it was held for too long")
                }
                let turn = self.gate("").queue.turn(at: exchange.now)
                if turn > .zero { try await exchange.sleep(for: turn) }
                return .pass
            }
        }
    }

    private func refuse(_ reason: String) -> Verdict {
        var response = HttpResponse.problem(overflow, "the request was not let through: \(reason)")
        response.fields.set(.retryAfter, to: 1)
        return .abort(with: response)
    }

    // MARK: The origin server

    public func ended(_ exchange: Exchange) {
        guard reason == .upstreamDown else { return }
        if let failure = exchange.failure, failure.side == .upstream, Accumulate.isUnreachable(failure.fault) {
            gate(of: exchange).queue.setClosed(true)
        } else if exchange.record.firstByte > 0 {
            gate(of: exchange).queue.setClosed(false)
        }
    }

    private static func isUnreachable(_ fault: GatewayError.Fault) -> Bool {
        switch fault {
        case .dnsError, .dnsTimeout, .destinationUnavailable, .connectionRefused, .connectionTimeout: true
        default: false
        }
    }

    // MARK: By hand

    public var isManual: Bool { reason == .manual }
    public var isClosed: Bool { queues.withLock { $0.values.contains { $0.queue.isClosed } } }
    public var heldCount: Int { queues.withLock { $0.values.reduce(0) { $0 + $1.queue.count } } }
    public func setClosed(_ isClosed: Bool) { gate("").queue.setClosed(isClosed) }
}

extension Accumulate: ConfigurableWare {
    public static let name: WareName = "accumulate"
    public static let about = WareAbout(
        "Holds requests for a while and lets them go in the order of coming.", source: "RFC 9110 §15.6.4",
        example: #"""
            - accumulate: { while: manual, releaseRate: 100/s }
            - accumulate: { while: upstreamDown, timeout: 30s }
            """#,
        details: #"""
            `credentialRefreshing` holds while the credential has no valid token and one is being asked for: for routes without
            `tokenRefresh`, which holds by itself. `upstreamDown` holds from a request whose connection could not be made until
            one got an answer, of whatever status; each second one request finds out, and is answered as it comes. `manual` holds between
            `POST /v1/holds/LABEL/close` and `open` of the admin listener; LABEL is that of the entry, else `accumulate`.

            One that finds no room, or waits longer than `timeout`, is answered 503 with `Retry-After`.
            """#)

    public convenience init(options: inout OptionsReader) {
        var reason: Reason?
        var credential: Credential?
        var limits = HoldLimits()
        var release = Release.fifo
        var rate: Rate?
        var overflow = HttpStatus.serviceUnavailable
        options.read("while", into: &reason, doc: "when requests are held")
        options.require("while")
        options.read("credential", into: &credential, of: "credentials", doc: "for credentialRefreshing")
        limits.read(&options)
        options.read("release", into: &release, doc: "in which order they go")
        options.read(
            "releaseRate", into: &rate, in: Rate(1, per: .hour)...Rate(1_000_000, per: .second),
            doc: "how fast they go; all at once without")
        options.read("overflow", into: &overflow, in: HttpStatus.errors, doc: "of the refusal, with Retry-After")
        if reason == .credentialRefreshing {
            if !options.isGiven("credential") { options.fail(at: "while", "credentialRefreshing needs credential") }
        } else if options.isGiven("credential") {
            options.fail(at: "credential", "belongs to while: credentialRefreshing")
        }
        self.init(
            while: reason ?? .manual, credential: credential, limits: limits, releaseRate: rate, overflow: overflow)
    }
}
