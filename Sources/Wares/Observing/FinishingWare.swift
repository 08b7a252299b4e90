public import HttpWare

/// A ware that has something left to do when the gateway ends.
public protocol FinishingWare: Ware {
    /// What does it, the same object for all copies of the ware; `nil`: nothing is ever left.
    var finisher: (any WareFinisher)? { get }
}

/// Does what is left for a ware. From any thread.
public protocol WareFinisher: AnyObject, Sendable {
    /// Returns when nothing is left to be done. On a loop that runs on; behind the last exchange, once.
    func finish() async
}
