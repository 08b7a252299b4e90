public import Credentials
import HttpWare
public import Wares

extension RedisClient: CredentialServer {
    public func share(_ definition: CredentialDefinition) -> (tokens: any TokenStore, lock: any RefreshLock) {
        let tokens = RedisTokenStore(self, definition)
        // Tokens that depend on the redeemed one must be written first.
        let follows = definition.grant == .refreshToken
        return (tokens, RedisRefreshLock(self, definition) { follows && tokens.isUnwritten })
    }

    public func isSame(as other: any CredentialServer) -> Bool { (other as? RedisClient)?.definition == definition }
}

extension RedisClient: RateServer {
    public func rate(_ limit: Gcra, name: String, patience: Int64) -> any SharedRate {
        RedisRate(self, name: name, limit, patience: patience)
    }
}

extension CredentialDefinition {
    /// The name under which gateways share the tokens: a digest of the credential's options for the authorization server. It
    /// is the same for equal options, whatever the name of the entry. A new refresh token gives a new name.
    var sharedName: String {
        var words = [grant.rawValue, tokenUrl?.text ?? "", issuer?.text ?? "", clientId ?? ""]
        if let refreshToken { words.append(refreshToken.revealed) } else { words += [name] + scopes }
        // The lengths are included, so that different lists give different texts.
        let text = words.map { "\($0.utf8.count):\($0)" }.joined()
        return Array(text.utf8).withUnsafeBytes { Digest256(of: $0) }.hex
    }
}
