/// Limits how fast content passes. Called on the loop of the exchange; one object may serve exchanges of all loops.
public protocol ContentPace: AnyObject, Sendable {
    /// The maximum number of bytes that `reserve` lets pass at once. By default unlimited.
    var largestPiece: Int { get }

    /// Reserves capacity for some of these bytes. Returns how many may pass, at least one, and how long to wait first.
    func reserve(_ count: Int, at now: LoopInstant) -> (count: Int, wait: Duration)
}

extension ContentPace {
    public var largestPiece: Int { .max }
}

/// Several paces for the same content: it waits for the slowest of them.
final class JointPace: ContentPace {
    private let paces: [any ContentPace]

    private init(_ paces: [any ContentPace]) { self.paces = paces }

    /// The pace for content that all these paces limit; `nil` if the list is empty.
    static func of(_ paces: [any ContentPace]) -> (any ContentPace)? {
        paces.count > 1 ? JointPace(paces) : paces.first
    }

    var largestPiece: Int { paces.reduce(.max) { min($0, $1.largestPiece) } }

    func reserve(_ count: Int, at now: LoopInstant) -> (count: Int, wait: Duration) {
        // No pace reserves more than passes: it may serve other exchanges, too.
        var granted = min(count, largestPiece)
        var wait = Duration.zero
        for pace in paces {
            let part = pace.reserve(granted, at: now)
            granted = min(granted, part.count)
            wait = max(wait, part.wait)
        }
        return (granted, wait)
    }
}
