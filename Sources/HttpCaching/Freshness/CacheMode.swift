public import HttpWare

/// The users of a cache. RFC 9111 §1.
public enum CacheMode: String, OptionWord {
    /// Many users, as in a gateway.
    case shared
    /// One user, as in a client.
    case `private`
}
