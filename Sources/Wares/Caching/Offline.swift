import HttpCaching
public import HttpWare
import Synchronization

/// Answers from stored responses only while the origin server cannot be reached, or as long as it is told to.
///
/// | option        | type                                | default                    | allowed   |
/// |---------------|-------------------------------------|----------------------------|-----------|
/// | `mode`        | `auto`, `always`, `never`           | `auto`                     |           |
/// | `detect`      | list of `dns`, `connect`, `timeout` | `[dns, connect, timeout]`  |           |
/// | `maxStale`    | duration                            | `24h`                      | 0s … 8760h |
/// | `abortStatus` | status                              | `504`                      | 400 … 599 |
/// | `probe`       | duration                            | `5s`                       | 1ms … 1h  |
public struct Offline: Middleware, Postware, OfflineSwitch {
    /// A kind of failure that tells that the origin server cannot be reached.
    public enum Sign: String, OptionWord {
        case dns, connect, timeout
    }

    public let state: OfflineState
    /// Which failures tell it.
    public var detect: [Sign]
    /// How stale a response may be that is used then.
    public var maxStale: Duration
    /// Of the answer where nothing is stored that will do.
    public var abortStatus: HttpStatus
    /// How often one request tries upstream after such a failure, while the others are answered from the store.
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

    /// The exchange goes no further than the store.
    private enum IsOffline: ExchangeKey { typealias Value = Bool }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        switch state.mode(at: exchange.wallNow) {
        case .never: return .pass
        case .always: break
        case .auto: guard isAnswerable(request.method), outage.holds(at: exchange.now, probe) else { return .pass }
        }
        guard isAnswerable(request.method) else {
            exchange.note("offline", asDecision: true)
            return .abort(with: refusal)
        }
        exchange.note("offline", asDecision: true)
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
        guard state.mode(at: exchange.wallNow) == .auto, isSign(failure.fault), isAnswerable(exchange.request.method)
        else { return .pass }
        outage.begin(at: exchange.now, probe)
        exchange.note("offline: \(failure.reason)")
        goOffline(exchange)
        return .replay(after: .zero)
    }

    /// Whether a stored response may answer at all.
    private func isAnswerable(_ method: HttpMethod) -> Bool { method == .get || method == .head }

    private var refusal: HttpResponse {
        .problem(abortStatus, "offline, and nothing is stored that will do")
    }

    /// From here on the store is all there is.
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
        case .connectionRefused, .destinationUnavailable: detect.contains(.connect)
        case .connectionTimeout: detect.contains(.connect) || detect.contains(.timeout)
        case .responseTimeout: detect.contains(.timeout)
        default: false
        }
    }
}

/// Whether the origin server was found to be out of reach, and when it is tried next. From any thread, without a lock.
private final class Outage: Sendable {
    /// When the next request tries, by the loops' clock in nanoseconds; 0 where it was reached last.
    private let next = Atomic<Int64>(0)

    /// Whether a request that comes now is not to try. The first one that comes when it is time tries, for all.
    func holds(at now: LoopInstant, _ probe: Duration) -> Bool {
        let due = next.load(ordering: .relaxed)
        guard due != 0 else { return false }
        guard now.nanoseconds >= due else { return true }
        let later = (now + probe).nanoseconds
        return !next.compareExchange(expected: due, desired: later, ordering: .relaxed).exchanged
    }

    func begin(at now: LoopInstant, _ probe: Duration) {
        next.store(max(1, (now + probe).nanoseconds), ordering: .relaxed)
    }

    func end() { if next.load(ordering: .relaxed) != 0 { next.store(0, ordering: .relaxed) } }
}

extension Offline: ConfigurableWare {
    public static let name: WareName = "offline"
    public static let about = WareAbout(
        "Answers from stored responses while the origin server cannot be reached, or as long as it is told to.",
        source: "RFC 9111 §4.2.4 and §5.2.1",
        example: #"""
            - offline: { maxStale: 48h }
            - httpCache
            """#,
        details: #"""
            In `auto` a GET or HEAD that fails in one of the ways that `detect` names is asked for again, of the cache behind this
            ware alone, which may then answer with what is stale by up to `maxStale` – unless the response forbids that. For a while the
            following requests are not sent upstream at all; every `probe` one tries. In `always` none is sent. What the store cannot
            answer is answered with `abortStatus`. The mode can be set while the gateway runs: `/v1/offline` of the admin listener.

            It stands before `httpCache` or `notModified`.
            """#)

    public init(options: inout OptionsReader) {
        var mode = OfflineMode.auto
        var detect = Sign.allCases
        var maxStale = Duration.seconds(86_400)
        var abortStatus = HttpStatus.gatewayTimeout
        var probe = Duration.seconds(5)
        options.read("mode", into: &mode, doc: "when requests are answered from stored responses only")
        options.read("detect", into: &detect, doc: "which failures tell that the origin server cannot be reached")
        options.read(
            "maxStale", into: &maxStale, in: .zero ... .seconds(31_536_000), doc: "how stale a response may be then")
        options.read(
            "abortStatus", into: &abortStatus, in: HttpStatus.errors, doc: "where nothing is stored that will do")
        options.read(
            "probe", into: &probe, in: .milliseconds(1) ... .seconds(3600), doc: "how often one request tries")
        self.init(mode: mode, detect: detect, maxStale: maxStale, abortStatus: abortStatus, probe: probe)
    }
}
