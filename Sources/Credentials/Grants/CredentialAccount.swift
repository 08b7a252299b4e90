import HttpWare

/// Whose tokens a credential has. What is stored for one account is not for another.
///
/// An account is named by the program or by its source of tokens. Otherwise its name is random: kept with the tokens, the same
/// through refreshes, and new when the tokens are forgotten or a login replaces them.
struct CredentialAccount {
    /// The name that the program gave.
    private let given: String?
    private(set) var name: String
    /// Identifies it in exchanges.
    private(set) var principal: Principal
    /// Whether tokens were had for it.
    private(set) var hasTokens = false
    /// The number of its first token.
    private(set) var firstToken = 0
    /// Whether its name is kept with the tokens: somebody asked for it, or it was kept already.
    private(set) var isKept: Bool
    /// Whether what was kept has been looked at.
    var isRead = false

    init(given: String?, isKept: Bool) {
        self.given = given
        self.isKept = isKept
        name = given ?? CredentialAccount.random()
        principal = CredentialAccount.principal(name)
    }

    private static func random() -> String {
        var random = SystemRandomNumberGenerator()
        return "random-" + String(random.next() as UInt64, radix: 16) + String(random.next() as UInt64, radix: 16)
    }

    private static func principal(_ name: String) -> Principal { Principal(method: "account", name: name) }

    /// Whether tokens that were kept are this account's: those of another one are no help.
    func owns(_ stored: StoredTokens) -> Bool { given == nil || stored.account == nil || stored.account == given }

    /// The account of tokens that were kept. Those that name none have a name that follows from them.
    mutating func adopt(_ stored: StoredTokens, firstToken: Int) {
        let isFirst = !isRead
        let hadTokens = hasTokens
        isRead = true
        hasTokens = true
        if let stored = stored.account {
            isKept = true
            become(stored, firstToken)
        } else if given == nil, isFirst, !hadTokens, let secret = stored.refreshToken ?? stored.accessToken {
            become("kept-" + StoredTokens.mark(secret), firstToken)
        }
    }

    /// Its name is asked for, so it has to be kept.
    mutating func keep() { isKept = true }

    /// Whose the next token is: of a login, and named by its source, or not.
    func next(named source: String?, isLogin: Bool) -> String {
        source ?? given ?? (isLogin && hasTokens ? CredentialAccount.random() : name)
    }

    /// There is a token of that account.
    mutating func issued(to name: String, token number: Int) {
        hasTokens = true
        isRead = true
        become(name, number)
    }

    /// Its tokens are forgotten.
    mutating func forget(nextToken: Int) {
        hasTokens = false
        isRead = true
        become(given ?? CredentialAccount.random(), nextToken)
    }

    private mutating func become(_ name: String, _ number: Int) {
        guard name != self.name else { return }
        self.name = name
        principal = CredentialAccount.principal(name)
        firstToken = number
    }
}
