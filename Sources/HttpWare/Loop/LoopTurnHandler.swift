/// What wants to be told when the loop has looked at everything that was ready.
public protocol LoopTurnHandler: AnyObject {
    /// The events that were ready with the present one have been handled. Called on the loop's thread.
    func turnEnded()
}
