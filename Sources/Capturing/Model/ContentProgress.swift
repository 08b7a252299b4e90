/// The arrival time of a piece of content.
public struct ContentProgress: Sendable, Equatable {
    /// The time since the response's head, in microseconds.
    public var time: Int
    /// The bytes of content that had arrived by then.
    public var size: Int

    public init(time: Int, size: Int) {
        self.time = time
        self.size = size
    }
}
