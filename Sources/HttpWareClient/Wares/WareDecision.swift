/// The decision of a ware in either direction; one of its values passes the message on.
public protocol WareDecision: SendableMetatype {
    /// Passes the message on to the next ware.
    static var pass: Self { get }
}

extension Verdict: WareDecision {}
extension Answer: WareDecision {}
