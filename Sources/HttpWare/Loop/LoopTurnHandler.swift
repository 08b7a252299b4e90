/// Receives an event after the loop has handled everything that was ready.
public protocol LoopTurnHandler: AnyObject {
    /// All events that were ready together have been handled. Called on the loop's thread.
    func turnEnded()
}
