import HttpCaching
public import HttpWare
import Synchronization

/// Serves stored responses while the origin server cannot be reached, or for as long as an operator switches it on.
public struct Offline: Middleware, Postware, OfflineSwitch {
    /// A kind of failure that shows that the origin server cannot be reached.
    public enum Sign: String, OptionWord {
        case dns, connect, timeout
    }

    /// The configured mode, and the one that an operator has set in its place.
    public let state: OfflineState
    /// The failures that show that the origin server cannot be reached.
    public var detect: [Sign]
    /// The maximum staleness of responses that are used while offline.
    public var maxStale: Duration
    /// The status of the answer if no suitable response is stored.
    public var abortStatus: HttpStatus
    /// The interval at which one request tests the origin server while all others are answered from the store.
    public var probe: Duration
    private let outage = Outage()

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }
    public var mayReplay: Bool { true }

    public init(
        mode: OfflineMode = .auto, detect: [Sign] = Sign.allCases, maxStale: Duration = .seconds(86_400),
        abortStatus: HttpStatus = .gatewayTimeout, probe: Duration = .seconds(5)
    ) {
        state = OfflineState(mode)
        self.detect = detect
        self.maxStale = maxStale
        self.abortStatus = abortStatus
        self.probe = probe
    }

    /// Set if the exchange must not go upstream.
    private enum IsOffline: ExchangeKey { typealias Value = Bool }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        switch state.mode(at: exchange.wallNow) {
        case .never: return .pass
        case .always: break
        case .auto: guard isAnswerable(request.method), outage.holds(at: exchange.now, probe) else { return .pass }
        }
        guard isAnswerable(request.method) else {
            exchange.note("offline", asDecision: true)
            exchange[AnswerCause.self] = Offline.switchedOff
            return .abort(with: refusal)
        }
        exchange.note("offline", asDecision: true)
        exchange[AnswerCause.self] = outage.cause ?? Offline.switchedOff
        goOffline(exchange)
        return .pass
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if exchange[IsOffline.self] == true {
            guard exchange.responder != .cache, response.status == .gatewayTimeout || exchange.responder == .gateway
            else { return .pass }
            return .replace(with: refusal)
        }
        guard exchange.responder == .gateway, let failure = exchange.failure else {
            if exchange.responder == .upstream { outage.end() }
            return .pass
        }
        guard state.mode(at: exchange.wallNow) == .auto, isSign(failure.fault),
            let method = exchange.request?.method, isAnswerable(method)
        else { return .pass }
        outage.begin(at: exchange.now, probe, after: failure)
        exchange[AnswerCause.self] = failure
        exchange.note("offline: \(failure.reason)")
        goOffline(exchange)
        return .replay(after: .zero)
    }

    /// The cause of refusals in mode `always`.
    private static let switchedOff = GatewayError(
        .gateway, .destinationUnavailable, "nothing is sent upstream while offline")

    /// Whether a stored response may answer at all.
    private func isAnswerable(_ method: HttpMethod) -> Bool { method == .get || method == .head }

    private var refusal: HttpResponse {
        .problem(abortStatus, "offline, and no suitable response is stored")
    }

    /// Restricts the exchange to stored responses.
    private func goOffline(_ exchange: Exchange) {
        var wishes = RequestDirectives()
        wishes.onlyIfCached = true
        wishes.maxStale = maxStale.components.seconds
        exchange[CacheWishes.self] = wishes
        exchange[IsOffline.self] = true
        exchange.isOffline = true
    }

    private func isSign(_ fault: GatewayError.Fault) -> Bool {
        switch fault {
        case .dnsError: detect.contains(.dns)
        case .dnsTimeout: detect.contains(.dns) || detect.contains(.timeout)
        case .connectionRefused, .destinationUnavailable, .noEndpoint: detect.contains(.connect)
        case .connectionTimeout: detect.contains(.connect) || detect.contains(.timeout)
        case .responseTimeout: detect.contains(.timeout)
        default: false
        }
    }
}

/// Whether the origin server is unreachable, and when it is tried next. Safe from any thread; only the failure has a lock.
private final class Outage: Sendable {
    /// When the next request tries the origin server, in nanoseconds of the loops' clock; 0 if the server was reached
    /// last.
    private let next = Atomic<Int64>(0)
    private let last = Mutex<GatewayError?>(nil)

    /// The failure that began the outage; `nil` while the origin server is reachable.
    var cause: GatewayError? { next.load(ordering: .relaxed) == 0 ? nil : last.withLock { $0 } }

    /// Whether a request must not go upstream now. The first request after the due time goes, and tests the server for
    /// all others.
    func holds(at now: LoopInstant, _ probe: Duration) -> Bool {
        let due = next.load(ordering: .relaxed)
        guard due != 0 else { return false }
        guard now.nanoseconds >= due else { return true }
        let later = (now + probe).nanoseconds
        return !next.compareExchange(expected: due, desired: later, ordering: .relaxed).exchanged
    }

    func begin(at now: LoopInstant, _ probe: Duration, after failure: GatewayError) {
        last.withLock { $0 = failure }
        next.store(max(1, (now + probe).nanoseconds), ordering: .relaxed)
    }

    func end() { if next.load(ordering: .relaxed) != 0 { next.store(0, ordering: .relaxed) } }
}

extension Offline: ConfigurableWare {
    public static let name: WareName = "offline"
    public static let chainPlace: ChainPlace? = .offline
    public static let orderRisks = [OrderRisk].ofSharedResponses
    public static let about = WareAbout(
        "Serves stored responses while the origin server cannot be reached, or for as long as an operator switches it on.",
        source: "RFC 9111 §4.2.4 and §5.2.1",
        example: #"""
            - offline: { maxStale: 48h }
            - httpCache
            """#,
        details: #"""
            In mode `auto`, a GET or HEAD that fails in one of the ways in `detect` is answered from the cache behind
            this ware. The cache may then use a response that is stale by up to `maxStale`, unless the response forbids
            it. After such a failure, further requests do not go upstream; one request every `probe` tests the origin
            server. In mode `always` no request goes upstream. If no suitable response is stored, the client gets
            `abortStatus`. The mode can be changed while the gateway runs, by `/v1/offline` of the admin listener.

            List this ware before `httpCache` or `notModified`.
            """#,
        otherNames: ["stale", "serveStale"])

    public init(options: inout OptionsReader) {
        let usual = Offline()
        var mode = usual.state.configured
        var detect = usual.detect
        var maxStale = usual.maxStale
        var abortStatus = usual.abortStatus
        var probe = usual.probe
        options.read(
            "mode", into: &mode,
            doc: "when only stored responses are served: during failures (auto), always, or never")
        options.read(
            "detect", into: &detect, doc: "kinds of failure that show that the origin server cannot be reached")
        options.read(
            "maxStale", into: &maxStale, in: .zero ... .seconds(31_536_000),
            doc: "how long after it became stale a stored response can still be served while offline")
        options.read(
            "abortStatus", into: &abortStatus, in: HttpStatus.errors,
            doc: "status of the response if no suitable response is stored")
        options.read(
            "probe", into: &probe, in: .milliseconds(1) ... .seconds(3600),
            doc: "interval at which one request tests whether the origin server can be reached again")
        self.init(mode: mode, detect: detect, maxStale: maxStale, abortStatus: abortStatus, probe: probe)
    }
}
