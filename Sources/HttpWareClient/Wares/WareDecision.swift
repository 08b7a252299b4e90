/// What a ware of either direction decides: one of its decisions lets the message go on.
public protocol WareDecision: SendableMetatype {
    /// On to the next one.
    static var pass: Self { get }
}

extension Verdict: WareDecision {}
extension Answer: WareDecision {}
