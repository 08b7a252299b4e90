public import HttpWare

/// Adds detailed metrics: request durations by method and status class, and the decisions and times of each ware.
///
/// The ware only marks the exchange. When the exchange ends, its loop counts it without a lock. The loops are asked for
/// their counts when the metrics are read.
public struct Metrics: Postware, WareObserver, ExchangeObserver {
    /// Whether the decisions and times of each ware are counted.
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
    public static let chainPlace: ChainPlace? = .metrics
    public static let about = WareAbout(
        "Adds detailed metrics: request durations by method and status class, and the decisions and times of each ware.",
        source: "OpenTelemetry semantic conventions (HTTP metrics), Prometheus text format 0.0.4",
        example: #"""
            - metrics
            """#,
        details: #"""
            Without this ware, `/metrics` of the admin listener has a few numbers for each route. For exchanges that
            pass this ware it also has `http_server_request_duration_seconds`, a histogram by listener, route, service,
            method and status class, and, for each ware, `httpware_ware_duration_seconds` and
            `httpware_ware_decisions_total`. If a client left before it had a response, the status class is `none`.
            Labels are names from the configuration, never paths. A method that is not registered is `_OTHER`.

            With `wares: false`, wares are not counted. Their times are then measured only if the inspector, `timeLog`
            or `accessLog` needs them.
            """#,
        otherNames: ["prometheus", "statsd"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read("wares", into: &wares, doc: "counts the decisions of each ware and the time that it took")
    }
}
