import HttpWare

/// A refusal of a cluster's node that says where the command can be executed.
enum RedisRedirect: Sendable, Equatable {
    /// The slot has moved for good. The place is `nil` if the node does not name it.
    case moved(RedisUrl.Place?)
    /// The key has moved already, while its slot is still moving.
    case asked(RedisUrl.Place)
    /// While the slot moves, some of the keys are here and some elsewhere.
    case tryAgain

    /// Reads a refusal: `MOVED 3999 127.0.0.1:6381`, `ASK 3999 127.0.0.1:6381` or `TRYAGAIN …`; `nil` for any other.
    init?(_ refusal: String) {
        if refusal.hasPrefix("TRYAGAIN") {
            self = .tryAgain
            return
        }
        guard refusal.hasPrefix("MOVED ") || refusal.hasPrefix("ASK ") else { return nil }
        let words = refusal.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 3, let colon = words[2].lastIndex(of: ":"),
            let port = RedisRedirect.number(words[2][words[2].index(after: colon)...].utf8)
        else { return nil }
        let place = RedisUrl.Place(host: words[2][..<colon].utf8, port: port)
        if refusal.hasPrefix("MOVED ") {
            self = .moved(place)
        } else {
            guard let place else { return nil }
            self = .asked(place)
        }
    }

    /// A decimal number of at most five digits; `nil` for anything else.
    static func number(_ digits: some Collection<UInt8>) -> Int64? {
        guard (1...5).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    /// Whether the refusal means that the server cannot work now, so that nothing was executed: it became a replica, is starting,
    /// or its cluster is incomplete.
    static func isAway(_ refusal: String) -> Bool {
        ["READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN"].contains { refusal.hasPrefix($0) }
    }
}
