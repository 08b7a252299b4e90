import HttpWare

/// The life of a supervised program: started, asked for its wishes, started again after it ended, ended with its ware.
///
/// It takes an event and returns the actions. So each order of events is a test without a process.
struct ProgramState: Sendable {
    enum Event: Sendable {
        /// A gateway uses the ware.
        case wanted
        /// The program could not be started.
        case startFailed
        /// The program has answered the first message.
        case answered
        /// The program did not answer the first message in time.
        case wasSilent
        /// The process has ended after this time.
        case ended(ran: Duration)
        /// The pause before the next start has ended.
        case pauseEnded
        /// The ware is not used any more.
        case unwanted
        /// The program had its time to end by itself.
        case graceEnded
    }

    enum Action: Sendable, Equatable {
        case start
        case pause(Duration)
        /// Ask the process to end (SIGTERM), and give it time for that.
        case terminate
        /// Kill the process (SIGKILL).
        case kill
        /// Nothing is left to do.
        case finish
    }

    private enum Phase {
        case idle, starting, running, failing, pausing, stopping, over
    }

    private var phase = Phase.idle
    /// The number of starts since the program last ran for a while.
    private var failures = 0
    private var random: UInt64

    /// The pause before the second start. It doubles with each further one, up to `longest`.
    static let shortest = Duration.milliseconds(100)
    static let longest = Duration.seconds(30)
    /// A program that ran for this time counts as healthy: its next start is the first one again.
    static let healthy = Duration.seconds(30)
    /// The time that a program has to end after SIGTERM.
    static let grace = Duration.seconds(5)

    /// Makes the state of a program that was not started.
    init(seed: UInt64) { random = seed }

    /// Whether the process runs and is expected to.
    var isUp: Bool { phase == .starting || phase == .running }

    mutating func handle(_ event: Event) -> [Action] {
        switch (phase, event) {
        case (.idle, .wanted), (.pausing, .pauseEnded):
            phase = .starting
            return [.start]
        case (.starting, .answered):
            phase = .running
            return []
        case (.starting, .wasSilent):
            phase = .failing
            return [.kill]
        case (.starting, .startFailed): return pause()
        case (.starting, .ended(let ran)), (.running, .ended(let ran)), (.failing, .ended(let ran)):
            if ran >= ProgramState.healthy, phase != .failing { failures = 0 }
            return pause()
        case (.idle, .unwanted), (.pausing, .unwanted):
            phase = .over
            return [.finish]
        case (.starting, .unwanted), (.running, .unwanted), (.failing, .unwanted):
            phase = .stopping
            return [.terminate]
        case (.stopping, .graceEnded): return [.kill]
        case (.stopping, .ended), (.stopping, .startFailed):
            phase = .over
            return [.finish]
        default: return []
        }
    }

    /// Pauses before the next start: for a time that doubles, and up to half of it longer, so that programs that ended together do not
    /// start together.
    private mutating func pause() -> [Action] {
        phase = .pausing
        let base = min(ProgramState.longest, ProgramState.shortest * (1 << min(failures, 10)))
        failures += 1
        random &+= SplitMix64.step
        let part = Double(SplitMix64.spread(random) >> 11) / Double(1 << 53)
        return [.pause(base + .nanoseconds(Int64(Double(base.nanoseconds) / 2 * part)))]
    }
}
