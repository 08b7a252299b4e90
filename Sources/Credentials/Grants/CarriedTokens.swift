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

    /// Most requests carry one. The wares of the exchange's chain hold the credentials as long as it lasts, so that none is
    /// another's place in memory.
    public struct Value {
        private var first: (credential: ObjectIdentifier, number: Int)
        private var others: [ObjectIdentifier: Int]?

        fileprivate init(_ credential: Credential, _ number: Int) { first = (ObjectIdentifier(credential), number) }

        fileprivate mutating func add(_ credential: Credential, _ number: Int) {
            if first.credential == ObjectIdentifier(credential) {
                first.number = number
            } else {
                others = others ?? [:]
                others?[ObjectIdentifier(credential)] = number
            }
        }

        /// The number of that credential's token; `nil` where the request carried none.
        public func number(of credential: Credential) -> Int? {
            first.credential == ObjectIdentifier(credential) ? first.number : others?[ObjectIdentifier(credential)]
        }
    }
}
