/// Keeps stored responses. Used from every loop at once: it guards itself, and waits for nothing.
public protocol CacheStore: AnyObject, Sendable {
    /// The most recent response under the key that `isMeant` picks, and whether there is any under the key.
    func find(_ key: CacheKey, where isMeant: (StoredResponse) -> Bool) -> (response: StoredResponse?, hasOthers: Bool)
    /// Stores a response, in place of those under the key that answer the same requests. Answers whether it had room.
    @discardableResult
    func store(_ response: StoredResponse, under key: CacheKey) -> Bool
    /// Puts an updated response in the place of one that is still there.
    func replace(_ response: StoredResponse, with update: StoredResponse, under key: CacheKey)
    /// Takes one response away, if it is still there.
    func remove(_ response: StoredResponse, under key: CacheKey)
    /// Takes all responses under the key away. Answers whether there were any.
    @discardableResult
    func invalidate(_ key: CacheKey) -> Bool
    /// What it holds.
    var census: StoreCensus { get }
}

/// What a store holds, for people to look at.
public struct StoreCensus: Sendable, Equatable {
    public var responses = 0
    /// Bytes, as counted against the limit.
    public var bytes = 0
    public var limit = 0
    /// Responses that went to make room.
    public var evicted = 0

    public init() {}
}
