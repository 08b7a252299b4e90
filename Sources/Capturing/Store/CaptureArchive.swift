/// Keeps captures beyond memory: all that ended and fit into its bound. Used from any thread; `put` is called on loops and must not
/// block, the others may read files.
public protocol CaptureArchive: Sendable {
    /// The highest number of a capture in it when it was opened.
    var lastId: Int { get }
    /// Takes an exchange that has ended, to be written by and by. If too much waits already, it is dropped and counted.
    func put(_ capture: CapturedExchange)
    /// The whole capture; `nil` if it is not kept, or damaged.
    func find(_ id: Int) -> CapturedExchange?
    /// Captures with lower numbers that match, the newest first, without those of `except`: rows, that is without fields, content and
    /// messages. At the deadline the page ends where the search has come to, but never where it began.
    func list(
        before id: Int, limit: Int, filter: CaptureFilter?, until deadline: ContinuousClock.Instant?,
        except: (Int) -> Bool
    ) -> CapturePage
    /// The numbers of captures with lower numbers that match, in any order.
    func ids(before id: Int, filter: CaptureFilter?) -> [Int]
    /// Writes on a capture what users said of it. False if it is not kept.
    func mark(_ id: Int, pinned: Bool?, comment: String?) -> Bool
    /// Erases what matches, except pinned captures. Returns the numbers.
    func clear(filter: CaptureFilter?) -> [Int]
    /// Writes what waits, and closes the files.
    func close()
}

/// A part of a list of captures, the newest first.
public struct CapturePage: Sendable {
    public var captures: [CapturedExchange]
    /// Captures before the one with this number were not looked at, or did not fit; `nil` at the end of the list.
    public var next: Int?

    public init(_ captures: [CapturedExchange], next: Int?) {
        self.captures = captures
        self.next = next
    }
}
