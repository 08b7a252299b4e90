public import HttpWare

/// Whom a cache serves. RFC 9111 §1.
public enum CacheMode: String, OptionWord {
    /// Many users: a gateway's.
    case shared
    /// One user: a client's own.
    case `private`
}
