import HttpCaching
import HttpWare
import Scripting

/// An operation of a script on its store.
enum ScriptStoring {
    case get(String)
    case set(String, [UInt8], Duration)
    case add(String, [UInt8], Duration)
    case remove(String)

    private static let longestKey = 1_024
    private static let largest = 64 << 10
    private static let longestLife = 30 * 86_400

    /// The operation for people: `store:get`.
    var text: String {
        switch self {
        case .get: "store:get"
        case .set: "store:set"
        case .add: "store:add"
        case .remove: "store:remove"
        }
    }

    /// Reads the arguments: the library itself, as the colon passes it, then a key, a value and a lifetime in seconds.
    init(_ function: ScriptFunction, _ use: ScriptUse) throws(ScriptMisuse) {
        guard use.withString(0, { _ in true }) == nil else {
            throw ScriptMisuse("write a colon, as in store:get(key)")
        }
        guard let key = use.withString(1, { String(decoding: $0, as: UTF8.self) }), key.utf8.count <= Self.longestKey
        else {
            throw ScriptMisuse("the key must be a string of at most \(Self.longestKey) bytes")
        }
        switch function {
        case .storeGet: self = .get(key)
        case .storeRemove: self = .remove(key)
        default:
            guard let value = use.bytes(2), value.count <= Self.largest else {
                throw ScriptMisuse("the value must be a string of at most \(Self.largest) bytes")
            }
            guard let seconds = use.integer(3), (1...Self.longestLife).contains(seconds) else {
                throw ScriptMisuse("the lifetime must be 1 to \(Self.longestLife) seconds")
            }
            self = function == .storeAdd ? .add(key, value, .seconds(seconds)) : .set(key, value, .seconds(seconds))
        }
    }

    /// Keys of scripts are apart from those of wares that share the store.
    private static func digest(_ key: String) -> Digest256 { Digest256(of: ["script", key]) }

    /// Carries out the operation. The results are the value, or whether it was done; after a failure, nothing and the reason.
    func carryOut(in store: any RecordStore) async -> [ScriptValue] {
        switch self {
        case .get(let key):
            switch await store.get(Self.digest(key)) {
            case .record(let bytes): return [.string(bytes)]
            case .none: return [.missing]
            case .unavailable: return Self.unavailable
            }
        case .set(let key, let value, let lifetime):
            switch await store.put(value, under: Self.digest(key), for: lifetime) {
            case .kept: return [.boolean(true)]
            case .full: return Self.full
            case .unavailable: return Self.unavailable
            }
        case .add(let key, let value, let lifetime):
            switch await store.claim(Self.digest(key), with: value, for: lifetime) {
            case .taken: return [.boolean(true)]
            case .held: return [.boolean(false)]
            case .full: return Self.full
            case .unavailable: return Self.unavailable
            }
        case .remove(let key): return await store.remove(Self.digest(key)) ? [.boolean(true)] : Self.unavailable
        }
    }

    private static let unavailable: [ScriptValue] = [.missing, .text("the store does not answer")]
    private static let full: [ScriptValue] = [.missing, .text("the store is full")]
}
