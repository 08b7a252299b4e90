public import HttpWare

/// The users of a cache. RFC 9111 §1.
public enum CacheMode: String, OptionWord {
    /// Many users: a gateway's.
    case shared
    /// One user: a client's own.
    case `private`
}
