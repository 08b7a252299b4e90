import HttpWare
import Synchronization

/// The sessions of browsers at an admin listener that requires a token, in memory of this process only. Safe to use from any thread.
///
/// The page holds its session where only its own origin can read it, and sends it as a Bearer token. Browsers send cookies to all ports
/// of a host (RFC 6265 §8.5), so a cookie would reach every other program on this machine that its user looks at.
final class AdminSessions: Sendable {
    private struct Session {
        let digest: Digest256
        var lastUse: LoopInstant
    }

    private struct Code {
        let digest: Digest256
        let end: LoopInstant
    }

    private struct State {
        var sessions: [Session] = []
        var codes: [Code] = []
    }

    private let state = Mutex(State())

    /// The maximum number of sessions; a further one ends the session that has not been used for the longest time.
    static let most = 64
    /// The time without requests after which a session ends.
    static let idle = Duration.seconds(12 * 3600)
    /// The time for which a code begins a session, once.
    static let codeLifetime = Duration.seconds(60)
    private static let mostCodes = 16

    /// Begins a session. Returns its value.
    func begin(at now: LoopInstant) -> String {
        let value = AdminSessions.random()
        state.withLock { state in
            AdminSessions.forget(&state, at: now)
            if state.sessions.count >= AdminSessions.most,
                let oldest = state.sessions.indices.min(by: {
                    state.sessions[$0].lastUse < state.sessions[$1].lastUse
                })
            {
                state.sessions.remove(at: oldest)
            }
            state.sessions.append(Session(digest: Digest256(of: [value]), lastUse: now))
        }
        return value
    }

    /// Whether the text is the value of a session, which this prolongs. Digests are compared, so that the time reveals nothing.
    func holds(_ text: Substring, at now: LoopInstant) -> Bool {
        let digest = Digest256(of: [String(text)])
        return state.withLock { state in
            AdminSessions.forget(&state, at: now)
            guard let place = state.sessions.firstIndex(where: { $0.digest == digest }) else { return false }
            state.sessions[place].lastUse = now
            return true
        }
    }

    /// Makes a code for a URL: it begins one session, within a minute. A browser's history keeps nothing of worth.
    func makeCode(at now: LoopInstant) -> String {
        let value = AdminSessions.random()
        state.withLock { state in
            AdminSessions.forget(&state, at: now)
            if state.codes.count >= AdminSessions.mostCodes { state.codes.removeFirst() }
            state.codes.append(Code(digest: Digest256(of: [value]), end: now + AdminSessions.codeLifetime))
        }
        return value
    }

    /// Whether the text is a code, which is used up by this.
    func redeem(_ text: Substring, at now: LoopInstant) -> Bool {
        let digest = Digest256(of: [String(text)])
        return state.withLock { state in
            AdminSessions.forget(&state, at: now)
            guard let place = state.codes.firstIndex(where: { $0.digest == digest }) else { return false }
            state.codes.remove(at: place)
            return true
        }
    }

    /// Ends all sessions, because the token has changed.
    func end() { state.withLock { $0 = State() } }

    private static func forget(_ state: inout State, at now: LoopInstant) {
        state.sessions.removeAll { now - $0.lastUse > idle }
        state.codes.removeAll { $0.end < now }
    }

    /// A text of 190 random bits.
    static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        return String((0..<32).map { _ in letters[Int.random(in: 0..<letters.count, using: &generator)] })
    }
}

extension AdminEndpoint {
    /// The endpoints by which a browser begins a session.
    static func sessions(_ guarding: AdminGuard) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/session", access: .local, isWrite: true) { request, exchange in
                .abort(with: guarding.beginSession(request.fields, at: exchange.now))
            },
            AdminEndpoint(path: "/v1/session/code", access: .known, isWrite: true) { _, exchange in
                let code = guarding.token == nil ? Json.null : .text(guarding.sessions.makeCode(at: exchange.now))
                return .abort(with: .json(.object([("code", code)])))
            },
        ]
    }
}
