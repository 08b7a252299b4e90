public import HttpWare

/// A request's place among those that wait behind a refresh. Given up when its wait ends, however it does.
public final class HoldPlace: Sendable {
    /// What the wait came to.
    public enum Outcome: Sendable {
        /// There is a token now.
        case ready
        case failed(CredentialFailure)
        case timedOut
    }

    /// Orders places as they were taken.
    let number: Int
    let bytes: Int
    /// The number of the refresh that is waited for.
    public let refresh: Int
    let since: LoopInstant
    private let timeout: Duration
    private let wait = LoopWait<Outcome>()
    private let ended: (@Sendable (Outcome) -> Void)?
    private let leave: @Sendable (HoldPlace) -> Void

    init(
        number: Int, bytes: Int, refresh: Int, since: LoopInstant, timeout: Duration,
        ended: (@Sendable (Outcome) -> Void)?, leave: @escaping @Sendable (HoldPlace) -> Void
    ) {
        self.number = number
        self.bytes = bytes
        self.refresh = refresh
        self.since = since
        self.timeout = timeout
        self.ended = ended
        self.leave = leave
    }

    /// Ends the wait. Places that a refresh lets go are ended by one task, in the order in which they were taken.
    func end(_ outcome: Outcome) {
        ended?(outcome)
        wait.resume(returning: outcome)
    }

    /// Waits for the refresh, on the loop of the calling task. Throws `CancellationError` when the task is cancelled: the
    /// client left, and the place is free.
    public func outcome() async throws(CancellationError) -> Outcome {
        defer { leave(self) }
        return try await wait.value(within: timeout, else: .timedOut)
    }

    /// How long it has been waiting.
    public func held(until now: LoopInstant) -> Duration { now - since }
}
