/// Decides which idle connections of a pool are not needed: those beyond `maxIdle` that no request took for a while.
///
/// Responses that arrive in one batch return more connections than stay idle on the whole, and the next batch takes them
/// again. If the surplus were closed at once, each batch would make its connections anew. So the pool counts how few
/// connections were idle at any moment of a window: that many stayed untouched throughout, because the pool is a stack.
struct IdleSurplus {
    /// What the pool does at the end of a window.
    enum Step: Equatable {
        /// The limit holds: nothing is to be watched until it is exceeded again.
        case rest
        /// Closes the connections that have been idle longest, and looks again after a while.
        case close(Int, next: Duration)
    }

    /// A connection beyond the limit is closed after it was idle for one to two windows.
    static let window = Duration.seconds(1)
    /// The most connections that are closed in one turn of the loop.
    static let mostAtOnce = 256
    /// The time between two turns that close connections.
    static let pause = Duration.milliseconds(10)

    /// More connections than the limit are idle, and the next step is due at some time.
    private(set) var isWatched = false
    /// The fewest connections that were idle at once since the window began.
    private var fewest = 0

    /// More connections than the limit are idle: a window begins. The first step is due at its end.
    mutating func beginWindow(idle: Int) {
        isWatched = true
        fewest = idle
    }

    /// A connection was taken, or has closed; that many are still idle.
    @inline(__always)
    mutating func shrank(to idle: Int) { if idle < fewest { fewest = idle } }

    /// The window has ended while that many connections are idle, of which `most` may stay.
    mutating func step(idle: Int, most: Int) -> Step {
        guard idle > most else {
            isWatched = false
            return .rest
        }
        let unneeded = min(fewest, idle - most)
        let closing = min(unneeded, IdleSurplus.mostAtOnce)
        fewest -= closing
        guard unneeded == closing else { return .close(closing, next: IdleSurplus.pause) }
        fewest = idle - closing
        return .close(closing, next: IdleSurplus.window)
    }
}
