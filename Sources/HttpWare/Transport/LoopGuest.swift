/// An object that another module keeps for a loop, with the loop's transport. Used on the loop's thread only.
public protocol LoopGuest: AnyObject {
    /// The loop is about to end.
    func close()
}
