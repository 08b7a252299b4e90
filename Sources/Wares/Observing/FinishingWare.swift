public import HttpWare

/// A ware that still has work to do when the gateway stops.
public protocol FinishingWare: Ware {
    /// The object that does the work, the same for all copies of the ware; `nil` if there is never any.
    var finisher: (any WareFinisher)? { get }
}

/// Does the remaining work of a ware. Safe to use from any thread.
public protocol WareFinisher: AnyObject, Sendable {
    /// Returns when the work is done. Called once, after the last exchange, on a loop that keeps running.
    func finish() async
}
