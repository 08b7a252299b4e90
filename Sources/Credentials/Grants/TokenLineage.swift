import HttpWare
import Synchronization

/// The tokens that follow from one grant. All credentials of the process that redeem the grant share it: that of the running
/// configuration, and those of former ones with requests in progress. One of them refreshes at a time, and the others take over
/// the result, like gateways that share a file. Guarded by a mutex.
final class TokenLineage: Sendable {
    private struct State {
        var isTaken = false
        var tokens: StoredTokens?
        /// The scopes for which the access token was requested.
        var scopes: [String] = []
    }

    private let state = Mutex(State())

    /// Takes the right to refresh, if it is free.
    func tryTake() -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
    }

    /// Frees the right to refresh.
    func giveBack() { state.withLock { $0.isTaken = false } }

    /// The tokens of the last refresh; `nil` before the first. The access token is left out for a credential with other scopes.
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
    /// Whether both redeem the same refresh token, so that each must know the other's new tokens.
    func redeemsSame(as other: CredentialDefinition) -> Bool {
        grant == .refreshToken && other.grant == .refreshToken && tokenUrl == other.tokenUrl && issuer == other.issuer
            && clientId == other.clientId && refreshToken == other.refreshToken
            && (refreshToken != nil || file == other.file)
    }
}
