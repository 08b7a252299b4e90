public import HttpWare

/// A request's place among the requests that wait for a refresh. It is freed when the wait ends, for whatever reason.
public final class HoldPlace: Sendable {
    /// The result of the wait.
    public enum Outcome: Sendable {
        /// There is a token now.
        case ready
        case failed(CredentialFailure)
        case timedOut
    }

    /// The number of the place, in the order of arrival.
    let number: Int
    let bytes: Int
    /// The number of the refresh that the request waits for.
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

    /// Ends the wait. One task ends the places that a refresh releases, in the order of arrival.
    func end(_ outcome: Outcome) {
        ended?(outcome)
        wait.resume(returning: outcome)
    }

    /// Waits for the refresh, on the loop of the calling task. Throws `CancellationError` if the task is cancelled
    /// because the client left; the place is then free.
    public func outcome() async throws(CancellationError) -> Outcome {
        defer { leave(self) }
        return try await wait.value(within: timeout, else: .timedOut)
    }

    /// How long the request has been waiting.
    public func held(until now: LoopInstant) -> Duration { now - since }
}
