import HttpWare

/// The account that a credential's tokens belong to. Data that is stored for one account is not used for another.
///
/// The program or its source of tokens names the account. Otherwise its name is random: it is kept with the tokens, remains
/// through refreshes, and changes when the tokens are forgotten or a login replaces them.
struct CredentialAccount {
    /// The name that the program gave.
    private let given: String?
    private(set) var name: String
    /// The principal that identifies the account in exchanges.
    private(set) var principal: Principal
    /// Whether the account has had tokens.
    private(set) var hasTokens = false
    /// The number of its first token.
    private(set) var firstToken = 0
    /// Whether its name is kept with the tokens, because the program asked for it or it was kept before.
    private(set) var isKept: Bool
    /// Whether the stored tokens have been read.
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

    /// Whether stored tokens belong to this account; those of another account cannot be used.
    func owns(_ stored: StoredTokens) -> Bool { given == nil || stored.account == nil || stored.account == given }

    /// Takes over the account of stored tokens. If they name no account, its name is derived from them.
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

    /// Called when the name is read, so that it has to be kept.
    mutating func keep() { isKept = true }

    /// The account of the next token: named by its source, or new after a login, or else the same.
    func next(named source: String?, isLogin: Bool) -> String {
        source ?? given ?? (isLogin && hasTokens ? CredentialAccount.random() : name)
    }

    /// Notes a new token of that account.
    mutating func issued(to name: String, token number: Int) {
        hasTokens = true
        isRead = true
        become(name, number)
    }

    /// Notes that the tokens are forgotten.
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
