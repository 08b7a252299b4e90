import HttpWare

/// The phases of an exchange as HAR 1.2 counts them, in microseconds. A phase that did not happen is `nil`.
public struct CapturedTimings: Sendable, Equatable {
    /// The wait before a connection was requested: in the gateway, for other attempts, for a free connection.
    public var blocked: Int?
    public var dns: Int?
    /// The time to connect, including TLS.
    public var connect: Int?
    /// TLS alone.
    public var ssl: Int?
    public var send = 0
    public var wait = 0
    public var receive = 0

    /// No phases.
    public init() {}

    /// The sum of the phases, each counted once.
    public var total: Int {
        [blocked ?? 0, dns ?? 0, connect ?? 0, send, wait, receive].reduce(0) { sum, part in
            let (result, overflows) = sum.addingReportingOverflow(part)
            return overflows ? .max : result
        }
    }

    /// The phases of a recorded exchange; their sum is its duration. Phases of attempts before the last belong to `blocked`.
    public init(of exchange: CapturedExchange) {
        if let timings = exchange.timings {
            self = timings
            return
        }
        let whole = Int(clamping: max(0, exchange.duration) / 1000)
        let phases = exchange.report?.phases ?? []
        guard let last = phases.last(where: { $0.phase != "backoff" })?.attempt else {
            wait = whole
            return
        }
        var ssl: Int?
        var left = whole
        for phase in phases where phase.attempt == last {
            // If the clocks disagree, the last phases become shorter.
            let time = min(CapturedTimings.microseconds(phase.duration), left)
            switch phase.phase {
            case "dns": dns = (dns ?? 0) + time
            case "connect": connect = (connect ?? 0) + time
            case "tls": ssl = (ssl ?? 0) + time
            case "send": send += time
            case "firstByte": wait += time
            case "content": receive += time
            default: continue
            }
            left -= time
        }
        if let ssl {
            self.ssl = ssl
            connect = (connect ?? 0) + ssl
        }
        if left > 0 { blocked = left }
    }

    static func microseconds(_ milliseconds: Double) -> Int {
        guard milliseconds.isFinite else { return 0 }
        return Int(min(max(milliseconds, 0), 1e12) * 1000 + 0.5)
    }
}
