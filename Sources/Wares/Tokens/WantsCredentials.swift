public import HttpWare

/// Whether a request wants credentials, as the code that made it says: the token wares do not act on a request that does not.
public enum WantsCredentials: ExchangeKey {
    public typealias Value = Bool
}
