/// Limits how fast content passes. Called on the loop of the exchange; one object may serve exchanges of all loops.
public protocol ContentPace: AnyObject, Sendable {
    /// Reserves capacity for some of these bytes. Returns how many may pass, at least one, and how long to wait first.
    func reserve(_ count: Int, at now: LoopInstant) -> (count: Int, wait: Duration)
}
