/// The reply of a Redis server (RESP2). The server can send any bytes in it.
public enum RedisReply: Sendable, Equatable {
    /// A string, simple or bulk.
    case bytes([UInt8])
    case integer(Int64)
    /// No value.
    case null
    case array([RedisReply])
    /// A refusal. Occurs only within arrays, because a refusal by itself is a `RedisFailure`.
    case error(String)

    /// The bytes of a string; `nil` for anything else.
    public var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

    /// The number; `nil` for anything else.
    public var integer: Int64? { if case .integer(let number) = self { number } else { nil } }

    /// The members of an array; `nil` for anything else.
    public var array: [RedisReply]? { if case .array(let members) = self { members } else { nil } }

    /// Whether the reply is a string with this text.
    public func isText(_ text: StaticString) -> Bool {
        guard let bytes, bytes.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { $0.elementsEqual(bytes) }
    }
}
