/// Decides which idle connections of a pool are not needed: those beyond `maxIdle` that no request used for a while.
///
/// Responses that arrive in one batch return more connections than usually stay idle, and the next batch takes them
/// again. If the surplus were closed at once, each batch would have to make its connections again. So the pool records the
/// smallest number of idle connections during a window. That many were never used in it, because the pool is a stack.
struct IdleSurplus {
    /// The pool's action at the end of a window.
    enum Step: Equatable {
        /// The limit holds: nothing needs watching until it is exceeded again.
        case rest
        /// Close the connections that have been idle longest, and check again after `next`.
        case close(Int, next: Duration)
    }

    /// A connection beyond the limit is closed after being idle for one to two windows.
    static let window = Duration.seconds(1)
    /// The maximum number of connections closed in one turn of the loop.
    static let mostAtOnce = 256
    /// The time between two turns that close connections.
    static let pause = Duration.milliseconds(10)

    /// Whether more connections than the limit are idle, so that a next step is scheduled.
    private(set) var isWatched = false
    /// The smallest number of idle connections since the window began.
    private var fewest = 0

    /// More connections than the limit are idle: a window begins. The first step is due at its end.
    mutating func beginWindow(idle: Int) {
        isWatched = true
        fewest = idle
    }

    /// A connection was taken or has closed; `idle` connections are left.
    @inline(__always)
    mutating func shrank(to idle: Int) { if idle < fewest { fewest = idle } }

    /// The window has ended with `idle` idle connections, of which `most` may stay.
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
