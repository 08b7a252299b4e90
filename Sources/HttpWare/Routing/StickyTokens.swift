import Synchronization

/// The tokens of one route or service, with a cache: opening a token takes longer than the rest of the choice. Any thread may use it.
final class StickyTokens: Sendable {
    private let seal: StickyToken.Seal
    private let memory = Mutex(StickyMemory())

    init(_ seal: StickyToken.Seal) { self.seal = seal }

    /// The content of a client's token; `nil` if the token is invalid or has expired.
    func known(_ text: UnsafeRawBufferPointer, _ now: UInt64) -> StickyToken? {
        guard text.count == StickyToken.length else { return nil }
        if let found = memory.withLock({ $0.find(text) }) { return found.end > now ? found : nil }
        guard let token = seal.token(in: text), token.end > now else { return nil }
        memory.withLock { $0.remember(text, token) }
        return token
    }

    /// The field values for clients that come to a place in this second, made by `values` from the token's text; `nil` if the token cannot
    /// be sealed.
    func given(
        _ place: UInt64, _ now: UInt64, until end: UInt64, _ values: (String) -> (plain: String, secure: String)
    ) -> StickyMemory.Given? {
        if let given = memory.withLock({ $0.given(place, now) }) { return given }
        let token = StickyToken(share: place, end: end)
        guard var text = seal.text(of: token) else { return nil }
        let (plain, secure) = values(text)
        let given = StickyMemory.Given(second: now, plain: Array(plain.utf8), secure: Array(secure.utf8))
        text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            memory.withLock { memory in
                memory.give(given, place)
                memory.remember(bytes, token)
            }
        }
        return given
    }
}

/// Caches recent tokens, and the field values for new clients.
struct StickyMemory {
    /// The values for the clients of one second.
    struct Given {
        let second: UInt64
        let plain: [UInt8]
        /// For clients that use https.
        let secure: [UInt8]
    }

    /// The current values, by place.
    private var given: [UInt64: Given] = [:]
    /// Each token has one slot, which it shares with other tokens.
    private var slots: [StickyToken?] = []
    private var texts: [UInt8] = []

    private static let count = 512
    private static let stride = 64
    /// The maximum number of places with current values: more than a service has endpoints, or a route shares.
    private static let mostGiven = 512

    /// The values made for this second; `nil` if there are none.
    func given(_ place: UInt64, _ second: UInt64) -> Given? {
        guard let given = given[place], given.second == second else { return nil }
        return given
    }

    mutating func give(_ values: Given, _ place: UInt64) {
        // Endpoints come and go.
        if given.count >= StickyMemory.mostGiven { given = [:] }
        given[place] = values
    }

    /// Finds a cached token.
    func find(_ text: UnsafeRawBufferPointer) -> StickyToken? {
        guard !slots.isEmpty else { return nil }
        let slot = StickyMemory.slot(of: text)
        guard let token = slots[slot] else { return nil }
        let start = slot * StickyMemory.stride
        var difference: UInt8 = 0
        for index in 0..<StickyToken.length { difference |= texts[start + index] ^ text[index] }
        return difference == 0 ? token : nil
    }

    /// Caches a valid token, replacing the one in its slot.
    mutating func remember(_ text: UnsafeRawBufferPointer, _ token: StickyToken) {
        if slots.isEmpty {
            slots = Array(repeating: nil, count: StickyMemory.count)
            texts = Array(repeating: 0, count: StickyMemory.count * StickyMemory.stride)
        }
        let slot = StickyMemory.slot(of: text)
        slots[slot] = token
        let start = slot * StickyMemory.stride
        for index in 0..<StickyToken.length { texts[start + index] = text[index] }
    }

    /// The slot of a token: by some characters of its tag, which is practically random.
    private static func slot(of text: UnsafeRawBufferPointer) -> Int {
        let word = text.loadUnaligned(fromByteOffset: 48, as: UInt64.self)
        return Int(truncatingIfNeeded: SplitMix64.spread(word)) & (count - 1)
    }
}
