public import HttpWare

/// Whether a request wants credentials, as set by the code that made the request. If it is false, the token wares do nothing.
public enum WantsCredentials: ExchangeKey {
    public typealias Value = Bool
}
