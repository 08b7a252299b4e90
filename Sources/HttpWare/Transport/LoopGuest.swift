/// What a room further out keeps for a loop, with the loop's transport. Used on the loop's thread only.
protocol LoopGuest: AnyObject {
    /// The loop ends.
    func close()
}
