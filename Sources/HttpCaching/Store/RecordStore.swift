public import HttpWare

/// Keeps records until their lifetime ends: sessions, and receipts of requests that must not be carried out twice.
///
/// A record is not a cached response. It is never removed to make room for another one, and no purge of a cache removes it. If
/// there is no room for a new record, the store refuses it, and its user refuses the request. A store that cannot answer says
/// so: that a record is missing is never a guess. Used from every loop at once: a store guards itself.
public protocol RecordStore: AnyObject, Sendable {
    /// The record under the key.
    func get(_ key: Digest256) async -> RecordReading
    /// Keeps a record for `lifetime` from now on, in place of the former one. Returns once it is kept, as durably as the store
    /// keeps records.
    func put(_ bytes: [UInt8], under key: Digest256, for lifetime: Duration) async -> RecordWriting
    /// Keeps a record unless there is one under the key already: in one step, so that of several claims one succeeds.
    func claim(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) async -> RecordClaim
    /// Removes the record under the key, if there is one. Returns false if that failed.
    @discardableResult
    func remove(_ key: Digest256) async -> Bool
    /// Whether the store can be used. A store that must be opened starts that when it is asked.
    var isReady: Bool { get }
    /// The contents of the store, in numbers; `nil` if they are not known in this process.
    var census: RecordCensus? { get }
    /// Writes what waits to be written before the program ends. Not on a loop; may take seconds.
    func close()
}

extension RecordStore {
    /// The default, for stores that need no opening.
    public var isReady: Bool { true }

    /// The default, for stores that write at once.
    public func close() {}
}

/// The answer of a store of records.
public enum RecordReading: Sendable, Equatable {
    case record([UInt8])
    case none
    /// The store does not answer, so it is not known whether there is a record.
    case unavailable
}

/// Whether a record is kept.
public enum RecordWriting: Sendable, Equatable {
    case kept
    /// There is no room, and no record may be removed to make some.
    case full
    case unavailable
}

/// The result of a claim.
public enum RecordClaim: Sendable, Equatable {
    case taken
    /// This record is under the key already.
    case held([UInt8])
    /// There is no room, and no record may be removed to make some.
    case full
    case unavailable
}

/// The contents of a store of records, in numbers.
public struct RecordCensus: Sendable, Equatable {
    public var records = 0
    /// Bytes, as counted against the limit.
    public var bytes = 0
    public var limit = 0
    /// Records that were refused because there was no room.
    public var refused = 0

    public init() {}
}
