public import Capturing
public import HttpWare
import Synchronization

/// Slows exchanges down to the speed of a poor connection.
public struct Throttle: Middleware, Postware {
    /// The speed towards clients, shared by all exchanges of the entry; `nil`, here and below, does not limit it.
    public let down: ByteRate?
    /// The speed towards origin servers.
    public let up: ByteRate?
    /// The delay of each request.
    public let latency: Duration
    /// The maximum deviation of the delay, in both directions.
    public let jitter: Duration
    private let downPace: RatePace?
    private let upPace: RatePace?

    /// Whether the ware keeps the state of a speed limit.
    public var holdsState: Bool { down != nil || up != nil }

    public init(
        down: ByteRate? = nil, up: ByteRate? = nil, latency: Duration = .zero, jitter: Duration = .zero
    ) {
        self.down = down
        self.up = up
        self.latency = latency
        self.jitter = jitter
        downPace = down.map { RatePace($0) }
        upPace = up.map { RatePace($0) }
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if let upPace { exchange.slowRequest(by: upPace) }
        guard latency > .zero || jitter > .zero else { return .pass }
        let most = jitter.nanoseconds
        var random = ReplaceableRandom()
        let wait = max(0, latency.nanoseconds + (most > 0 ? Int64.random(in: -most...most, using: &random) : 0))
        return .wait { _, exchange in
            try await exchange.sleep(for: .nanoseconds(wait))
            return .pass
        }
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if let downPace { exchange.slowResponse(by: downPace) }
        return .pass
    }
}

/// Shares a speed among exchanges, first come, first served: each piece gets its time after all earlier reservations.
final class RatePace: ContentPace {
    /// When the next byte may pass, in nanoseconds of the loops' clock. Guarded by a mutex.
    private let next = Mutex<Int64>(.min)
    private let perSecond: Int
    let largestPiece: Int

    /// The time for which unused speed can be made up for, in nanoseconds.
    private static let memory: Int64 = 50_000_000

    init(_ rate: ByteRate) {
        perSecond = max(1, rate.bytes.bytes)
        largestPiece = min(max(1, perSecond / 20), 256 << 10)
    }

    func reserve(_ count: Int, at now: LoopInstant) -> (count: Int, wait: Duration) {
        let granted = min(max(1, count), largestPiece)
        let time = Int64(Double(granted) / Double(perSecond) * 1e9)
        let start = next.withLock { next in
            let start = max(next, now.nanoseconds - RatePace.memory)
            let (end, overflows) = start.addingReportingOverflow(time)
            next = overflows ? .max : end
            return start
        }
        return (granted, .nanoseconds(max(0, start - now.nanoseconds)))
    }
}

/// The speed of a kind of connection.
enum ThrottlePreset: String, OptionWord {
    case mobile3g = "3g"
    case edge, lossy, dsl

    var throttle: Throttle {
        switch self {
        case .mobile3g:
            Throttle(
                down: ByteRate(.kibibytes(200)), up: ByteRate(.kibibytes(96)), latency: .milliseconds(300),
                jitter: .milliseconds(50))
        case .edge:
            Throttle(
                down: ByteRate(.kibibytes(30)), up: ByteRate(.kibibytes(25)), latency: .milliseconds(840),
                jitter: .milliseconds(150))
        case .lossy:
            Throttle(
                down: ByteRate(.kibibytes(100)), up: ByteRate(.kibibytes(50)), latency: .milliseconds(500),
                jitter: .milliseconds(500))
        case .dsl:
            Throttle(
                down: ByteRate(.kibibytes(256)), up: ByteRate(.kibibytes(48)), latency: .milliseconds(50),
                jitter: .milliseconds(10))
        }
    }
}

extension Throttle: FilteredWare {}

extension Throttle: ConfigurableWare {
    public static let name: WareName = "throttle"
    public static let about = WareAbout(
        "Slows exchanges down to the speed of a poor connection.", source: "Charles, WebPageTest",
        example: #"""
            - throttle: { down: 200KiB/s, up: 50KiB/s, latency: 100ms, jitter: 20ms }
              filter: "~d example.com"
            - throttle: { preset: edge }
              if: { path: /videos/** }
            """#,
        details: #"""
            `down` and `up` are shared by all exchanges that the entry acts on. Content that is slowed down waits where it
            comes from: nothing is read ahead. The bytes of WebSockets and of tunnels are slowed down in the same way.

            The presets:

            | preset | `down` | `up` | `latency` | `jitter` |
            |---|---|---|---|---|
            | `3g` | 200KiB/s | 96KiB/s | 300ms | 50ms |
            | `edge` | 30KiB/s | 25KiB/s | 840ms | 150ms |
            | `lossy` | 100KiB/s | 50KiB/s | 500ms | 500ms |
            | `dsl` | 256KiB/s | 48KiB/s | 50ms | 10ms |

            No packets are lost: `lossy` waits as long as a connection that sends lost packets again. Options beside
            `preset` replace its values. `filter` stands beside `if`, and is decided on the request.
            """#,
        otherNames: ["bandwidth", "bandwidthLimit", "limitRate", "slow"])

    public init(options: inout OptionsReader) {
        var preset: ThrottlePreset?
        var down: ByteRate?
        var up: ByteRate?
        var latency: Duration?
        var jitter: Duration?
        let rates = ByteRate(.bytes(1))...ByteRate(.gibibytes(1024))
        let times = Duration.zero...Duration.seconds(60)
        options.read("down", into: &down, in: rates, doc: "bytes in a second towards clients; by default not limited")
        options.read(
            "up", into: &up, in: rates, doc: "bytes in a second towards origin servers; by default not limited")
        options.read("latency", into: &latency, in: times, doc: "how long each request waits")
        options.read("jitter", into: &jitter, in: times, doc: "how much more or less a request waits, at most")
        options.read("preset", into: &preset, doc: "the values of a kind of connection")
        options.require(anyOf: ["down", "up", "latency", "jitter", "preset"], "slows nothing down")
        let base = preset?.throttle ?? Throttle()
        self.init(
            down: down ?? base.down, up: up ?? base.up, latency: latency ?? base.latency, jitter: jitter ?? base.jitter)
    }
}
