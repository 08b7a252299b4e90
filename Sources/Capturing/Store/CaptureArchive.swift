/// Keeps captures beyond memory: all that ended and fit into its limit. May be used from any thread. `put` is called on loops and
/// must not block; the other functions may read files.
public protocol CaptureArchive: Sendable {
    /// The highest number of a capture in the archive when it was opened.
    var lastId: Int { get }
    /// Queues an exchange that has ended, to be written later. If the queue is full, the exchange is dropped and counted.
    func put(_ capture: KeptCapture)
    /// The whole capture; `nil` if it is not kept, or damaged.
    func find(_ id: Int) -> CapturedExchange?
    /// The captures with lower numbers that match, newest first, except those in `except`. They are rows, without fields, content
    /// and messages. At the deadline the page ends at the current position of the search, which has always advanced.
    func list(
        before id: Int, limit: Int, filter: CaptureFilter?, until deadline: ContinuousClock.Instant?,
        except: (Int) -> Bool
    ) -> CapturePage
    /// The numbers of matching captures with lower numbers, in any order.
    func ids(before id: Int, filter: CaptureFilter?) -> [Int]
    /// Stores a user's pin or comment for a capture. Returns false if the capture is not kept.
    func mark(_ id: Int, pinned: Bool?, comment: String?) -> Bool
    /// Erases matching captures, except pinned ones. Returns their numbers.
    func clear(filter: CaptureFilter?) -> [Int]
    /// Writes the queue, and closes the files.
    func close()
}

extension CaptureArchive {
    /// The same for a capture that is already made.
    public func put(_ capture: CapturedExchange) { put(KeptCapture(capture)) }
}

/// A part of a list of captures, newest first.
public struct CapturePage: Sendable {
    public var captures: [CapturedExchange]
    /// Captures before this number were not searched, or did not fit; `nil` at the end of the list.
    public var next: Int?

    public init(_ captures: [CapturedExchange], next: Int?) {
        self.captures = captures
        self.next = next
    }
}
