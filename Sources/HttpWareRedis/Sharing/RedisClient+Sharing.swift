public import Credentials
import HttpWare
public import Wares

extension RedisClient: CredentialServer {
    public func share(_ definition: CredentialDefinition) -> (tokens: any TokenStore, lock: any RefreshLock) {
        let tokens = RedisTokenStore(self, definition)
        // What follows from what was redeemed has to be there first.
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
    /// What gateways that share its tokens call it: a digest of what the authorization server is told, the same wherever the
    /// entry says the same, whatever its name. A refresh token that is written anew is another one.
    var sharedName: String {
        var words = [grant.rawValue, tokenUrl?.text ?? "", issuer?.text ?? "", clientId ?? ""]
        if let refreshToken { words.append(refreshToken.revealed) } else { words += [name] + scopes }
        // With their lengths, so that no two lists look alike.
        let text = words.map { "\($0.utf8.count):\($0)" }.joined()
        return Array(text.utf8).withUnsafeBytes { Digest256(of: $0) }.hex
    }
}
