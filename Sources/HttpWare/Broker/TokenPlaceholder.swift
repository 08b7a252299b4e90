/// A text that stands for a token: `hwp_` and 32 letters and digits. It is useless by itself.
///
/// Programs get it instead of a token that they must not see.
public struct TokenPlaceholder: Sendable, Hashable {
    /// The text.
    public let text: String
    let bytes: [UInt8]

    static let prefix = Array("hwp_".utf8)
    /// The number of bytes.
    static let length = 36

    /// Makes a new placeholder from random letters and digits.
    public static func make() -> TokenPlaceholder {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        var random = SystemRandomNumberGenerator()
        return TokenPlaceholder(
            bytes: prefix + (0..<(length - prefix.count)).map { _ in letters.randomElement(using: &random) ?? 0x30 })
    }

    /// Reads a placeholder; `nil` if the text has another form.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == TokenPlaceholder.length,
            bytes.starts(with: TokenPlaceholder.prefix),
            bytes.dropFirst(TokenPlaceholder.prefix.count).allSatisfy(ByteClass.isAlphanumeric)
        else { return nil }
        self.init(bytes: bytes)
    }

    init(bytes: [UInt8]) {
        self.bytes = bytes
        text = String(decoding: bytes, as: UTF8.self)
    }
}
