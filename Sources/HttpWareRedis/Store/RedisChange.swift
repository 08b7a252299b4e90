import HttpCaching

/// A message between gateways that share a Redis store: a sender's mark of 16 random bytes, and the change.
enum RedisChange: Equatable {
    /// The responses stored under this key.
    case key(CacheKey)
    /// The responses stored under all keys with the URI of this one.
    case uri(CacheKey)
    /// Any number of responses.
    case several

    static let senderBytes = 16
    /// A key that is a URI alone.
    private static let keyMark = UInt8(ascii: "k")
    /// A key with other parts. Gateways of earlier versions take each unknown mark for `several`.
    private static let partsMark = UInt8(ascii: "p")
    private static let uriMark = UInt8(ascii: "u")
    private static let severalMark = UInt8(ascii: "*")

    /// A random mark of a sender.
    static func makeSender() -> [UInt8] { (0..<senderBytes).map { _ in .random(in: 0...255) } }

    func message(from sender: [UInt8]) -> [UInt8] {
        switch self {
        case .key(let key): sender + [key.hasParts ? RedisChange.partsMark : RedisChange.keyMark] + key.encoded
        case .uri(let key): sender + [RedisChange.uriMark] + key.uri
        case .several: sender + [RedisChange.severalMark]
        }
    }

    /// Reads a message; `nil` if it is from `sender` itself. An unknown message counts as a change of any response.
    init?(_ message: [UInt8], except sender: [UInt8]) {
        let rest = message.dropFirst(RedisChange.senderBytes)
        if !rest.isEmpty, message.starts(with: sender) { return nil }
        let bytes = Array(rest.dropFirst())
        switch rest.first {
        case RedisChange.keyMark: self = .key(CacheKey(bytes))
        case RedisChange.partsMark: self = CacheKey(encodedWithParts: bytes).map { .key($0) } ?? .several
        case RedisChange.uriMark: self = .uri(CacheKey(bytes))
        default: self = .several
        }
    }
}
