import HttpCaching

/// A message between gateways that share a Redis store: a sender's mark of 16 random bytes, and the change.
enum RedisChange: Equatable {
    /// The responses stored under this key.
    case key(CacheKey)
    /// Any number of responses.
    case several

    static let senderBytes = 16
    private static let keyMark = UInt8(ascii: "k")
    private static let severalMark = UInt8(ascii: "*")

    /// A random mark of a sender.
    static func makeSender() -> [UInt8] { (0..<senderBytes).map { _ in .random(in: 0...255) } }

    func message(from sender: [UInt8]) -> [UInt8] {
        switch self {
        case .key(let key): sender + [RedisChange.keyMark] + key.bytes
        case .several: sender + [RedisChange.severalMark]
        }
    }

    /// Reads a message; `nil` if it is from `sender` itself. An unknown message counts as a change of any response.
    init?(_ message: [UInt8], except sender: [UInt8]) {
        let rest = message.dropFirst(RedisChange.senderBytes)
        if !rest.isEmpty, message.starts(with: sender) { return nil }
        self = rest.first == RedisChange.keyMark ? .key(CacheKey(Array(rest.dropFirst()))) : .several
    }
}
