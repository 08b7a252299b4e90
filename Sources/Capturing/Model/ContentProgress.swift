/// When a piece of content came.
public struct ContentProgress: Sendable, Equatable {
    /// Since the response's head, in microseconds.
    public var time: Int
    /// How many bytes of the content had come then.
    public var size: Int

    public init(time: Int, size: Int) {
        self.time = time
        self.size = size
    }
}
