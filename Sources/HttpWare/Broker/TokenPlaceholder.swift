import Glibc

/// A text that stands for a token: `hwp_` and 32 letters and digits. It is worth nothing by itself.
///
/// Programs get it in place of a token that they must not see.
public struct TokenPlaceholder: Sendable, Hashable {
    /// The text.
    public let text: String
    let bytes: [UInt8]

    static let prefix = Array("hwp_".utf8)
    /// The number of bytes.
    static let length = 36

    /// Makes a new one from random letters and digits.
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
            bytes.withUnsafeBytes({ TokenPlaceholder.matchedCount(in: $0, at: 0) }) == TokenPlaceholder.length
        else { return nil }
        self.init(bytes: bytes)
    }

    init(bytes: [UInt8]) {
        self.bytes = bytes
        text = String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Finding

    /// Where the first text of this form begins, from `start` on; `nil` if there is none.
    static func first(in bytes: UnsafeRawBufferPointer, from start: Int = 0) -> Int? {
        guard let base = bytes.baseAddress else { return nil }
        // The underscore is rarer than letters.
        var from = start + prefix.count - 1
        while from < bytes.count {
            guard let found = memchr(base + from, 0x5f, bytes.count - from) else { return nil }
            let underscore = UnsafeRawPointer(found) - base
            let index = underscore - (prefix.count - 1)
            if matchedCount(in: bytes, at: index) == length { return index }
            from = underscore + 1
        }
        return nil
    }

    /// Where a text of this form may begin whose rest has not come; the number of bytes if there is none.
    static func unfinished(in bytes: UnsafeRawBufferPointer, from start: Int = 0) -> Int {
        var index = max(start, bytes.count - (length - 1))
        while index < bytes.count {
            if bytes[index] == prefix[0], matchedCount(in: bytes, at: index) == bytes.count - index { return index }
            index += 1
        }
        return bytes.count
    }

    /// How many bytes from `index` on are as in a placeholder.
    private static func matchedCount(in bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
        let most = min(length, bytes.count - index)
        var count = 0
        while count < most {
            let byte = bytes[index + count]
            guard count < prefix.count ? byte == prefix[count] : isAlphanumeric(byte) else { return count }
            count += 1
        }
        return count
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        ByteClass.isDigit(byte) || (byte | 0x20) &- 0x61 < 26
    }
}
