public import HttpWare

/// The tokens that the last attempt of an exchange carried, by credential: what a 401 is about. An `ExchangeKey` of this module,
/// for the ware that injects and the one that refreshes.
public struct CarriedTokens: ExchangeKey {
    /// Most requests carry one.
    public struct Value {
        private var first: (credential: Credential, token: IssuedToken)
        private var others: [(credential: Credential, token: IssuedToken)] = []

        public init(_ credential: Credential, _ token: IssuedToken) { first = (credential, token) }

        /// Notes that the request carries this token of the credential, in place of another of it.
        public mutating func add(_ credential: Credential, _ token: IssuedToken) {
            if first.credential === credential {
                first.token = token
            } else {
                others.removeAll { $0.credential === credential }
                others.append((credential, token))
            }
        }

        /// The token of that credential; `nil` where the request carried none.
        public func token(of credential: Credential) -> IssuedToken? {
            first.credential === credential
                ? first.token : others.first { $0.credential === credential }?.token
        }
    }
}
