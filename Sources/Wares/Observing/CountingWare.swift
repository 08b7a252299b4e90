public import HttpWare

/// A ware that counts what it does, for metrics.
public protocol CountingWare: Ware {
    /// The object that counts, the same for all copies of the ware.
    var counter: any WareCounter { get }
}

/// Counts for a ware. Safe to use from any thread.
public protocol WareCounter: AnyObject, Sendable {
    /// The current numbers, always the same metrics in the same order.
    var numbers: [WareNumber] { get }
}

/// A number for metrics.
public struct WareNumber: Sendable, Equatable {
    /// The metric's name: `httpware_rate_limited_total`.
    public let name: String
    /// Whether the number can also fall.
    public let isGauge: Bool
    /// A sentence that explains the metric.
    public let help: String
    /// The current value.
    public let value: Int

    init(_ name: String, isGauge: Bool = false, _ help: String, _ value: Int) {
        self.name = name
        self.isGauge = isGauge
        self.help = help
        self.value = value
    }
}
