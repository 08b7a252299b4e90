public import HttpWare

/// Lets the metrics tell methods and classes of statuses apart, with how long they took, and say what each ware did.
///
/// | option  | type    | default |
/// |---------|---------|---------|
/// | `wares` | boolean | `true`  |
///
/// It only marks the exchange: each loop counts by itself when the exchange ends, without a lock, and is asked when somebody looks.
public struct Metrics: Postware, WareObserver, ExchangeObserver {
    /// Whether it is counted what each ware decided, and how long it took.
    public var wares: Bool

    public var failsOpen: Bool { true }
    public var observesWares: Bool { wares }

    public init(wares: Bool = true) { self.wares = wares }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }

    public func ended(_ exchange: Exchange) {
        if exchange.measuring != .wares { exchange.measuring = wares ? .wares : .kind }
    }
}

extension Metrics: ConfigurableWare {
    public static let name: WareName = "metrics"
    public static let about = WareAbout(
        "Lets the metrics tell methods and classes of statuses apart, and say what each ware did and how long it took.",
        source: "OpenTelemetry semantic conventions (HTTP metrics), Prometheus text format 0.0.4",
        example: #"""
            - metrics
            """#,
        details: #"""
            `/metrics` of the admin listener has a few numbers of each route without it. For exchanges that pass it there are
            `http_server_request_duration_seconds`, a histogram by listener, route, service, method and class of status, and by ware
            `httpware_ware_duration_seconds` and `httpware_ware_decisions_total`. A client that left before it had a response has the class
            `none`. Labels are names from the configuration, never a path: a method that is not registered is `_OTHER`.

            With `wares: false` wares are not counted, and where nobody else looks at them (the inspector, `timeLog`, `accessLog`) their time is not taken.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("wares", into: &wares, doc: "counts what each ware decided, and how long it took")
    }
}
