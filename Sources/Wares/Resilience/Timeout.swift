public import HttpWare

/// Limits how long the steps of an exchange may take, in place of the service's limits.
///
/// | option     | type     | default       | allowed     |
/// |------------|----------|---------------|-------------|
/// | `connect`  | duration | the service's | 1ms … 1h    |
/// | `response` | duration | the service's | 1ms … 1h    |
/// | `idle`     | duration | the service's | 1ms … 1h    |
/// | `total`    | duration | the service's | 1ms … 24h   |
/// | `status`   | status   | `504`         | 400 … 599   |
public struct Timeout: Middleware {
    /// Until a connection is made; `nil`, here and below, leaves the service's limit.
    public var connect: Duration?
    /// From the request's end to the response's head.
    public var response: Duration?
    /// Without progress.
    public var idle: Duration?
    /// From the request's head to the response's end.
    public var total: Duration?
    /// Of the answer where the response has not begun by then; `nil` leaves it at that of another entry, or 504.
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
    public static let about = WareAbout(
        "Limits how long the steps of an exchange may take, in place of the service's limits.",
        source: "RFC 9110 §15.6.5, nginx, Envoy",
        example: #"""
            - timeout: { response: 2s, total: 10s }
              if: { path: /search/** }
            """#,
        details: #"""
            `connect` is the time until there is a connection, `response` from the request's end to the head of the response, `idle` without
            progress, `total` from the request's head to the end of the response, waits and further tries included. What is not written is
            the service's. A response that has not begun when its time is over becomes `status`; one that has is cut off. While the client
            sends its content the listener's limits count: what stops coming is answered with 408, as it is when `total` is over by then.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        let allowed = Duration.milliseconds(1)...Duration.seconds(3600)
        options.read("connect", into: &connect, in: allowed, doc: "until a connection is made")
        options.read("response", into: &response, in: allowed, doc: "from the request's end to the response's head")
        options.read("idle", into: &idle, in: allowed, doc: "without progress")
        options.read(
            "total", into: &total, in: .milliseconds(1) ... .seconds(86_400),
            doc: "from the request's head to the response's end")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "of what came too late; 504 without")
        if !["connect", "response", "idle", "total"].contains(where: { options.isGiven($0) }) {
            options.fail("limits nothing; write connect, response, idle or total")
        }
    }
}
