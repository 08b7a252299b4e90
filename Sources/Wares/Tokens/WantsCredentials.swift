public import HttpWare

/// Whether a request is to carry credentials, where whoever made it says so: the token wares pass by one that is not.
public enum WantsCredentials: ExchangeKey {
    public typealias Value = Bool
}
