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
        if let state = states.withLock({ $0[loop] }), !state.state.isDead { return state }
        let state = LoopScript(script, try script.makeState())
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

    func giveBack(_ turn: ScriptTurn) {
        turn.begin(in: nil)
        spare = turn
    }
}
