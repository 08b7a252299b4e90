import HttpWare
import Synchronization

/// A program that answers callouts: one process for all loops, started again when it ends, and ended with the last copy of its ware.
final class CalloutProgram: Sendable {
    /// The program and its surroundings, from the options.
    struct Settings: Sendable {
        /// The program and its arguments.
        var command: [String]
        /// A file for the program, which is written when it starts; its path stands in `command` as `hostPlace`.
        var host: [UInt8]?
        /// The working directory; `nil` for that of the gateway.
        var folder: String?
        /// The value of `options` in the first message.
        var options = Json.object([])
        /// The halves and the content, unless the program says otherwise.
        var wants = CalloutWants()
        /// The maximum time from a start until the first answer.
        var startTimeout = Duration.seconds(10)
        /// Gets the output of the program, and the events of its life.
        var log = WareLog.shared

        /// Stands for the path of the written file.
        static let hostPlace = "\u{0}host"

        /// The request in a test run: the program has the URL of its file's name, or of its own.
        var caseRequest: HttpRequest? {
            let file = command.dropFirst().first { !$0.hasPrefix("-") && $0 != Settings.hostPlace && $0.contains(".") }
            let name = (file ?? command.first ?? "").split(separator: "/").last.map(String.init) ?? ""
            return CalloutAddress.caseMessage("/\(name)")
        }

        /// The program for people, without user information of URLs in its arguments.
        var name: String {
            let words = command.filter { $0 != Settings.hostPlace && $0 != "-B" }.joined(separator: " ")
            return String(Redaction.text(words).prefix(80))
        }
    }

    /// Whether the program answers, or the reason why it does not.
    enum Condition: Sendable {
        /// It answers.
        case ready(CalloutWants)
        /// It has said that it cannot work, or its first answer is wrong.
        case refusing(String)
        /// It is being started.
        case starting
        /// It has ended, or could not be started.
        case down(String)
    }

    let settings: Settings
    private let board: ProgramBoard
    private let supervisor: ProgramSupervisor

    init(_ settings: Settings) {
        self.settings = settings
        board = ProgramBoard()
        supervisor = ProgramSupervisor(settings, board)
    }

    deinit { supervisor.end() }

    /// The program's name for people.
    var name: String { settings.name }

    /// Calls the program on its socket. Throws if it was not started yet.
    func client() throws(CalloutFault) -> any HttpClient {
        guard let client = board.client else { throw CalloutFault(.noAnswer, "\(name) was not started") }
        return client
    }

    /// The halves and the content, as the program said last; `nil` before its first answer.
    var knownWants: CalloutWants? { board.wants }

    /// Waits until the program is ready. While it starts, it has the time of its start. If it is down, it has the time of a call.
    ///
    /// If `mayHaveEnded`, the process is looked at first: a connection to it was closed.
    func ready(
        within timeout: Duration, in exchange: Exchange, mayHaveEnded: Bool = false
    ) async throws -> CalloutWants {
        start()
        if mayHaveEnded { try await supervisor.lookAtEnd() }
        let begun = exchange.now
        while true {
            let (condition, version) = board.look()
            let limit: Duration
            let reason: String
            switch condition {
            case .ready(let wants): return wants
            case .refusing(let reason): throw CalloutFault(.wrongAnswer, reason)
            case .starting: (limit, reason) = (settings.startTimeout, "\(name) is still starting")
            case .down(let why): (limit, reason) = (timeout, why)
            }
            let left = limit - (exchange.now - begun)
            guard left > .zero else { throw CalloutFault(.noAnswer, reason) }
            let wait = board.wait(after: version)
            defer { board.leave(wait) }
            try await wait.value(within: left, else: ())
        }
    }
}

extension CalloutProgram: WareStarter {
    func start() { supervisor.start() }
}

extension CalloutProgram: WareFinisher {
    func finish() async { await supervisor.endAndWait() }
}

/// The condition of a program, for all loops.
///
/// Guarded by a mutex.
final class ProgramBoard: Sendable {
    private struct State {
        var condition = CalloutProgram.Condition.starting
        /// The number of changes.
        var version = 0
        var wants: CalloutWants?
        var client: (any HttpClient)?
        var waits: [LoopWait<Void>] = []
    }

    private let state = Mutex(State())

    var wants: CalloutWants? { state.withLock { $0.wants } }

    var client: (any HttpClient)? {
        get { state.withLock { $0.client } }
        set { state.withLock { $0.client = newValue } }
    }

    /// The condition, and the number of its changes so far.
    func look() -> (CalloutProgram.Condition, version: Int) { state.withLock { ($0.condition, $0.version) } }

    /// Sets the condition, and tells the requests that wait.
    func set(_ condition: CalloutProgram.Condition) {
        let told = state.withLock { state in
            state.condition = condition
            state.version += 1
            if case .ready(let wants) = condition { state.wants = wants }
            defer { state.waits = [] }
            return state.waits
        }
        for wait in told { wait.resume(returning: ()) }
    }

    /// A wait for the next change.
    func wait(after version: Int) -> LoopWait<Void> {
        let wait = LoopWait<Void>()
        let isOver = state.withLock { state in
            if state.version == version { state.waits.append(wait) }
            return state.version != version
        }
        if isOver { wait.resume(returning: ()) }
        return wait
    }

    /// Forgets a wait.
    func leave(_ wait: LoopWait<Void>) { state.withLock { state in state.waits.removeAll { $0 === wait } } }
}
