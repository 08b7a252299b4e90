import HttpCaching

/// What gateways that share a Redis store tell each other: who changed something – 16 bytes by chance –, and what.
enum RedisChange: Equatable {
    /// The responses stored under this key.
    case key(CacheKey)
    /// Any number of responses.
    case several

    static let senderBytes = 16
    private static let keyMark = UInt8(ascii: "k")
    private static let severalMark = UInt8(ascii: "*")

    /// A sender's mark, by chance.
    static func makeSender() -> [UInt8] { (0..<senderBytes).map { _ in .random(in: 0...255) } }

    func message(from sender: [UInt8]) -> [UInt8] {
        switch self {
        case .key(let key): sender + [RedisChange.keyMark] + key.bytes
        case .several: sender + [RedisChange.severalMark]
        }
    }

    /// Reads a message; `nil` for one of `sender` itself. What cannot be understood may have been about anything.
    init?(_ message: [UInt8], except sender: [UInt8]) {
        let rest = message.dropFirst(RedisChange.senderBytes)
        if !rest.isEmpty, message.starts(with: sender) { return nil }
        self = rest.first == RedisChange.keyMark ? .key(CacheKey(Array(rest.dropFirst()))) : .several
    }
}
