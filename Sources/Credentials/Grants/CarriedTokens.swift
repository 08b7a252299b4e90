public import HttpWare

/// The tokens that the last attempt of an exchange carried, by credential: what a 401 is about. An `ExchangeKey` of this module,
/// for the ware that injects and the one that refreshes.
public struct CarriedTokens: ExchangeKey {
    /// Notes that the request carries this token of the credential, in place of another of it.
    public static func note(_ credential: Credential, _ number: Int, in exchange: Exchange) {
        note(credential, number, &exchange[CarriedTokens.self])
    }

    private static func note(_ credential: Credential, _ number: Int, _ carried: inout Value?) {
        if carried == nil {
            carried = Value(credential, number)
        } else {
            carried?.add(credential, number)
        }
    }

    /// Most requests carry one.
    public struct Value {
        private var first: (credential: Credential, number: Int)
        private var others: [(credential: Credential, number: Int)] = []

        fileprivate init(_ credential: Credential, _ number: Int) { first = (credential, number) }

        fileprivate mutating func add(_ credential: Credential, _ number: Int) {
            if first.credential === credential {
                first.number = number
            } else {
                others.removeAll { $0.credential === credential }
                others.append((credential, number))
            }
        }

        /// The number of that credential's token; `nil` where the request carried none.
        public func number(of credential: Credential) -> Int? {
            first.credential === credential
                ? first.number : others.first { $0.credential === credential }?.number
        }
    }
}
