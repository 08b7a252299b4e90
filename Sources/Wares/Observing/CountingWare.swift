public import HttpWare

/// A ware that counts what it does, for metrics.
public protocol CountingWare: Ware {
    /// What counts: the same object for all copies of the ware.
    var counter: any WareCounter { get }
}

/// Counts for a ware. From any thread.
public protocol WareCounter: AnyObject, Sendable {
    /// The present numbers, always the same ones in the same order.
    var numbers: [WareNumber] { get }
}

/// A number for metrics.
public struct WareNumber: Sendable, Equatable {
    /// The metric's name: `httpware_rate_limited_total`.
    public let name: String
    /// It may fall, too.
    public let isGauge: Bool
    /// A sentence for people.
    public let help: String
    public let value: Int

    init(_ name: String, isGauge: Bool = false, _ help: String, _ value: Int) {
        self.name = name
        self.isGauge = isGauge
        self.help = help
        self.value = value
    }
}
