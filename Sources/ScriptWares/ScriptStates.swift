import HttpWare
import Scripting
import Synchronization

/// The states of one script: one for each loop that has used it.
final class ScriptStates: Sendable {
    private let script: LoadedScript
    private let states = Mutex<[ObjectIdentifier: LoopScript]>([:])

    init(_ script: LoadedScript) { self.script = script }

    /// The state of the exchange's loop, made on first use and again after one has ended.
    func state(of exchange: Exchange) throws(ScriptFault) -> LoopScript {
        let loop = exchange.loopIdentity
        let former = states.withLock { $0[loop] }
        if let former, !former.state.isDead { return former }
        let began = former == nil ? exchange.now : exchange.readClock()
        let state = LoopScript(script, try script.makeState())
        // The first one is not the fault of a script.
        if let former {
            state.hasRun(from: began, to: exchange.readClock())
            state.restsUntil = [state.restsUntil, former.restsUntil].compactMap(\.self).max()
        }
        states.withLock { $0[loop] = state }
        return state
    }
}

/// A script's state on one loop.
///
/// Unchecked: only exchanges of its loop get it, by the identity of their loop, and use it there; the table of states passes it on.
final class LoopScript: @unchecked Sendable {
    let state: ScriptState
    private let script: LoadedScript
    /// A turn that no call uses.
    private var spare: ScriptTurn?
    /// The end of the rest after a long run.
    fileprivate(set) var restsUntil: LoopInstant?
    /// The shortest run that is followed by a rest, in nanoseconds.
    private static let longRun: Int64 = 250_000

    init(_ script: LoadedScript, _ state: ScriptState) {
        self.script = script
        self.state = state
    }

    func takeTurn(in exchange: Exchange) -> ScriptTurn {
        let turn = spare ?? ScriptTurn(script)
        spare = nil
        turn.begin(in: exchange)
        return turn
    }

    /// Whether the script rests: after a long run, for as long as that took, so that the loop serves other clients meanwhile.
    func rests(at now: LoopInstant) -> Bool {
        guard let restsUntil else { return false }
        if restsUntil > now { return true }
        self.restsUntil = nil
        return false
    }

    /// Takes note of the run that has ended. It began at `start`.
    func hasRun(from start: LoopInstant, in exchange: Exchange) {
        guard state.lastRun > LoopScript.longRun else { return }
        hasRun(from: start, to: exchange.readClock())
    }

    /// Takes note of a use of the loop. The clock may have moved further, because the process was stopped.
    func hasRun(from start: LoopInstant, to end: LoopInstant) {
        let length = end - start
        guard length > .nanoseconds(LoopScript.longRun) else { return }
        restsUntil = end + min(length, max(script.limits.state.callTime, LoopScript.leastLongest))
    }

    /// The longest rest of a script with a short `time`: the making of its state may take longer than a call.
    private static let leastLongest = Duration.milliseconds(20)

    func giveBack(_ turn: ScriptTurn) {
        turn.begin(in: nil)
        spare = turn
    }
}
