public import HttpWare

/// The tokens that the last attempt of an exchange carried, by credential. A 401 is about one of these. An `ExchangeKey` of this
/// module, shared by the ware that injects tokens and the one that refreshes them.
public struct CarriedTokens: ExchangeKey {
    /// Notes that the request carries this token of the credential, in place of an earlier one.
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

    /// Most requests carry one token. The wares of the exchange's chain retain the credentials until the exchange ends, so that
    /// no two credentials have the same address.
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

        /// The number of that credential's token; `nil` if the request carried none.
        public func number(of credential: Credential) -> Int? {
            first.credential == ObjectIdentifier(credential) ? first.number : others?[ObjectIdentifier(credential)]
        }
    }
}
