public import HttpWare

/// What may be known of a credential: everything but its tokens.
public struct CredentialReport: Sendable {
    /// Where a credential is in its life.
    public enum State: String, Sendable {
        /// It has a token.
        case ready
        /// It has none, or one that expired, and the next request asks for one.
        case empty
        /// A token is being asked for.
        case refreshing
        /// The last refresh failed, and it is too early for another.
        case failed
    }

    /// A refresh that ended.
    public struct Refresh: Sendable {
        /// What came of it.
        public enum Outcome: String, Sendable {
            case renewed
            /// Somebody else had renewed it already: the file said so.
            case adopted
            case refused
            case failed
        }

        public let number: Int
        public let ended: WallTime
        public let duration: Duration
        public let outcome: Outcome
        /// Why it failed; `nil` where it did not.
        public let reason: String?
        /// How many requests waited for it.
        public let held: Int
    }

    public let name: String
    public let grant: CredentialDefinition.Grant
    public let state: State
    /// `nil` where there is no token, or nobody knows.
    public let expires: WallTime?
    /// The number of the present token; 0 where there is none.
    public let token: Int
    /// Requests that wait at the moment, and their bytes.
    public let held: Int
    public let heldBytes: Int
    /// Refreshes by what came of them.
    public let counts: [Refresh.Outcome: Int]
    /// Requests that waited, of which so many found no room, and so many waited too long.
    public let heldTotal: Int
    public let overflows: Int
    public let timeouts: Int
    /// The last ones, the newest first.
    public let history: [Refresh]
    /// How long no refresh is tried any more; `nil` where one may be.
    public let pausedFor: Duration?
}

extension CredentialReport.Refresh.Outcome: CaseIterable {}
