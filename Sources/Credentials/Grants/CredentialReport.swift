public import HttpWare

/// The state of a credential, without its tokens.
public struct CredentialReport: Sendable {
    /// The current state of a credential.
    public enum State: String, Sendable {
        /// There is a token that can be sent.
        case ready
        /// There is no token, or it has expired. The next request asks for one.
        case empty
        /// A refresh is in progress.
        case refreshing
        /// The last refresh failed, and it is too early for the next one.
        case failed
    }

    /// A refresh that ended.
    public struct Refresh: Sendable {
        /// The result of a refresh.
        public enum Outcome: String, Sendable {
            case renewed
            /// The token had been renewed elsewhere already, according to the file or the store.
            case adopted
            case refused
            case failed
        }

        public let number: Int
        public let ended: WallTime
        public let duration: Duration
        public let outcome: Outcome
        /// Why the refresh failed; `nil` if it did not fail.
        public let reason: String?
        /// The number of requests that waited for the refresh.
        public let held: Int
    }

    public let name: String
    public let grant: CredentialDefinition.Grant
    public let state: State
    /// When the token expires; `nil` if there is no token or its expiry is unknown.
    public let expires: WallTime?
    /// The number of the current token; 0 if there is none.
    public let token: Int
    /// The number of waiting requests, and their size in bytes.
    public let held: Int
    public let heldBytes: Int
    /// The number of refreshes by result.
    public let counts: [Refresh.Outcome: Int]
    /// The number of requests that have waited, that found no room, and that waited too long.
    public let heldTotal: Int
    public let overflows: Int
    public let timeouts: Int
    /// The last refreshes, the newest first.
    public let history: [Refresh]
    /// The time until the next refresh may begin; `nil` if it may begin now.
    public let pausedFor: Duration?
    /// Why requests will be refused although the authorization server answers: tokens live too short for the window of refreshes.
    public let shortfall: String?
}

extension CredentialReport.Refresh.Outcome: CaseIterable {}
