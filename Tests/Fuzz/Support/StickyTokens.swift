@testable import HttpWare

/// Values that a client may show as the token of its share.
extension Fuzzing {
    private static let key = SealingKey(Array("a secret that no input holds".utf8), for: "sticky")
    private static let seal = StickyToken.Seal(keys: [key], route: "fuzz")
    private static let sealed: [UInt8] = Array((seal.text(of: StickyToken(share: 7, end: .max)) ?? "").utf8)

    /// Reads the input as a token: nothing but the sealed one opens, whatever is made of that. Then as a line of cookies: those of the
    /// name are gone afterwards, and the others stay as they were, in their order.
    public static func stickyToken(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, bytes) = input(start, count) else { return }
        var token = sealed
        for (place, byte) in zip(bytes.indices, bytes) where choice & 1 == 1 && !token.isEmpty {
            token[place % token.count] ^= byte
        }
        if choice & 1 == 0 { token = bytes }
        let read = token.withUnsafeBytes { seal.token(in: $0) }
        require((read != nil) == (token == sealed), "opened what nobody sealed")
        var fields = HttpFields()
        guard (try? fields.append(.cookie, String(decoding: bytes, as: UTF8.self))) != nil else { return }
        fields.receivedCount = fields.lines.count
        var expected = fields
        expected.removeCookie("a")
        fields.takeCookie("a") { _ in }
        require(
            fields.cookieValues("a").isEmpty && fields.received.cookieValues("a").isEmpty,
            "a cookie of the name is left")
        require(fields.values(of: .cookie) == expected.values(of: .cookie), "another cookie was changed")
    }
}
