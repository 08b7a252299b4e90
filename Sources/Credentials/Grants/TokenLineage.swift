import HttpWare
import Synchronization

/// The tokens that followed from one grant, for all credentials of the process that redeem it: that of the running configuration,
/// and those of former ones whose requests have not ended. One of them refreshes at a time, and the others take over what came
/// of it, as gateways do that share a file. Guarded by a mutex.
final class TokenLineage: Sendable {
    private struct State {
        var isTaken = false
        var tokens: StoredTokens?
        /// For what the access token was asked.
        var scopes: [String] = []
    }

    private let state = Mutex(State())

    /// Takes the right to refresh, if nobody has it.
    func tryTake() -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
    }

    /// Gives it back.
    func giveBack() { state.withLock { $0.isTaken = false } }

    /// What came of the last refresh: without the access token for one who asks for other scopes. `nil` before the first.
    func tokens(for definition: CredentialDefinition) -> StoredTokens? {
        state.withLock { state in
            var tokens = state.tokens
            if state.scopes != definition.scopes { tokens?.accessToken = nil }
            return tokens
        }
    }

    func keep(_ tokens: StoredTokens?, for definition: CredentialDefinition) {
        state.withLock { state in
            state.tokens = tokens
            state.scopes = definition.scopes
        }
    }
}

extension CredentialDefinition {
    /// Whether both redeem the same refresh token: what one does to it the other has to know.
    func redeemsSame(as other: CredentialDefinition) -> Bool {
        grant == .refreshToken && other.grant == .refreshToken && tokenUrl == other.tokenUrl && issuer == other.issuer
            && clientId == other.clientId && refreshToken == other.refreshToken
            && (refreshToken != nil || file == other.file)
    }
}
