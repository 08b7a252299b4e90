public import HttpWare

/// Sets time limits for connecting, responding, idle time and the whole exchange, in place of the service's limits.
public struct Timeout: Middleware {
    /// The limit until a connection is made; `nil`, here and below, leaves the service's limit in force.
    public var connect: Duration?
    /// The limit from the end of the request to the response's header section.
    public var response: Duration?
    /// The limit without progress.
    public var idle: Duration?
    /// The limit from the request's header section to the end of the response.
    public var total: Duration?
    /// The status if the response has not begun in time; `nil` leaves that of another entry, or 504, in force.
    public var status: HttpStatus?

    public init(
        connect: Duration? = nil, response: Duration? = nil, idle: Duration? = nil, total: Duration? = nil,
        status: HttpStatus? = nil
    ) {
        self.connect = connect
        self.response = response
        self.idle = idle
        self.total = total
        self.status = status
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if let connect { exchange.timeouts.connect = connect }
        if let response { exchange.timeouts.response = response }
        if let idle { exchange.timeouts.idle = idle }
        if let total { exchange.timeouts.total = total }
        if let status { exchange.timeouts.status = status }
        return .pass
    }
}

extension Timeout: ConfigurableWare {
    public static let name: WareName = "timeout"
    public static let chainPlace: ChainPlace? = .timeLimits
    public static let about = WareAbout(
        "Sets time limits for connecting, responding, idle time and the whole exchange, in place of the service's limits.",
        source: "RFC 9110 §15.6.5, nginx, Envoy",
        example: #"""
            - timeout: { response: 2s, total: 10s }
              if: { path: /search/** }
            """#,
        details: #"""
            `total` includes waits and further attempts. The service's limits apply to all options that are not given. If a
            response has not begun when its time is over, the client gets `status`. If it has begun, it is cut off.
            While the client sends its content, the listener's limits apply: if the content stops coming, the client
            gets 408. It also gets 408 if `total` is over by then.
            """#,
        otherNames: ["requestTimeout", "deadline"])

    public init(options: inout OptionsReader) {
        self.init()
        let allowed = Duration.milliseconds(1)...Duration.seconds(3600)
        options.read(
            "connect", into: &connect, in: allowed,
            doc: "time limit until a connection to the origin server is made; by default that of the service")
        options.read(
            "response", into: &response, in: allowed,
            doc:
                "time limit from the end of the request to the beginning of the response; by default that of the service"
        )
        options.read(
            "idle", into: &idle, in: allowed, doc: "time limit without any progress; by default that of the service")
        options.read(
            "total", into: &total, in: .milliseconds(1) ... .seconds(86_400),
            doc:
                "time limit from the beginning of the request to the end of the response; by default that of the service"
        )
        options.read(
            "status", into: &status, in: HttpStatus.errors,
            doc: "status of the response if a limit is exceeded; by default 504")
        options.require(anyOf: ["connect", "response", "idle", "total"], "sets no limit")
    }
}
