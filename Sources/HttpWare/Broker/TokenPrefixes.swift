/// Finds where a token may begin in a stream, with one table lookup per byte (Aho and Corasick).
///
/// It knows the first symbols of the token as plain text and in base64. A stretch without these and without escapes contains no token.
struct TokenPrefixes: Sendable {
    /// The next state for each state and byte, or `stop`.
    private let next: [UInt8]
    /// Whether an escape character may be the first symbol of the token itself.
    private let beginsWithBreak: Bool
    /// For each state: the number of preceding bytes that belong to it.
    private let depths: [UInt8]

    /// The maximum number of symbols of each pattern that are used: more are not needed to skip almost all of a text.
    private static let most = 6
    private static let stop = UInt8.max

    /// Makes the table from patterns; each symbol is the set of its possible bytes. No pattern is empty.
    init(_ patterns: [[Set<UInt8>]]) {
        let patterns = patterns.map { Array($0.prefix(TokenPrefixes.most)) }
        let roots = patterns.indices.map { Place(pattern: $0, count: 0) }
        // A state is the set of partial matches of the patterns, in their order.
        var states: [[Place]] = [[]]
        var numbers: [[Place]: UInt8] = [[]: 0]
        var next: [UInt8] = []
        var index = 0
        while index < states.count {
            var row = [UInt8](repeating: 0, count: 256)
            // Escapes, and line ends inside base64.
            for byte in index == 0 ? [0x25, 0x5c] : [0x25, 0x5c, 0x0a, 0x0d] { row[byte] = TokenPrefixes.stop }
            let open = states[index] + roots
            for byte in Set(open.flatMap { patterns[$0.pattern][$0.count] }) where row[Int(byte)] != TokenPrefixes.stop
            {
                let places = open.filter { patterns[$0.pattern][$0.count].contains(byte) }.map {
                    Place(pattern: $0.pattern, count: $0.count + 1)
                }
                if places.contains(where: { $0.count == patterns[$0.pattern].count }) {
                    row[Int(byte)] = TokenPrefixes.stop
                } else if let known = numbers[places] {
                    row[Int(byte)] = known
                } else if states.count < Int(TokenPrefixes.stop) {
                    numbers[places] = UInt8(states.count)
                    row[Int(byte)] = UInt8(states.count)
                    states.append(places)
                } else {
                    row[Int(byte)] = TokenPrefixes.stop
                }
            }
            next += row
            index += 1
        }
        self.next = next
        beginsWithBreak = patterns.contains { $0[0].contains(0x25) || $0[0].contains(0x5c) }
        depths = states.map { UInt8($0.map(\.count).max() ?? 0) }
    }

    /// A partial match: the number of matched symbols of a pattern.
    private struct Place: Hashable {
        let pattern: Int
        let count: Int
    }

    /// The place at or after `start` where a token may begin, if no byte before `start` belongs to one; the number of
    /// bytes if no token begins in them.
    func place(in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        next.withUnsafeBufferPointer { next in
            var index = start
            var state = 0
            while index < bytes.count {
                let following = next[state << 8 | Int(bytes[index])]
                if following != TokenPrefixes.stop {
                    state = Int(following)
                    index += 1
                } else if state == 0, let length = otherEscape(at: index, bytes, next) {
                    index += length
                } else {
                    return index - Int(depths[state])
                }
            }
            return index - Int(depths[state])
        }
    }

    /// The length of an escape that begins no token, whether it is interpreted or not; `nil` if the next bytes may be
    /// another escape.
    @inline(__always)
    private func otherEscape(
        at index: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ next: UnsafeBufferPointer<UInt8>
    ) -> Int? {
        guard !beginsWithBreak, index + 2 < bytes.count else { return nil }
        let second = bytes[index + 1]
        if bytes[index] == 0x25 {
            guard next[Int(second)] == 0 else { return nil }
            guard let high = Hex.value(second) else { return 2 }
            let third = bytes[index + 2]
            guard next[Int(third)] == 0 else { return nil }
            guard let low = Hex.value(third) else { return 3 }
            return next[Int(high << 4 | low)] == 0 ? 3 : nil
        }
        guard bytes[index] == 0x5c, second != 0x75, second == 0x5c || next[Int(second)] == 0 else { return nil }
        // Two of the other escapes stand for the end of a line.
        return next[0x0a] == 0 ? 2 : nil
    }

    /// Whether these bytes, as a complete text, may contain a token.
    func mayHold(in bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        next.withUnsafeBufferPointer { next in
            var state = 0
            for byte in bytes {
                let following = next[state << 8 | Int(byte)]
                if following == TokenPrefixes.stop { return true }
                state = Int(following)
            }
            return false
        }
    }
}
