/// What another module keeps for a loop, with the loop's transport. Used on the loop's thread only.
public protocol LoopGuest: AnyObject {
    /// The loop ends.
    func close()
}
