import COpenSSL
import COpenSSLShims

/// A SHA-256 digest (FIPS 180-4), as a key of tables, and for secrets that are stored only as digests.
///
/// Digests are compared in constant time: the duration does not reveal where they differ.
public struct Digest256: Sendable {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// The digest of the bytes, preceded by a salt if there is one. Allocates nothing.
    public init(of bytes: UnsafeRawBufferPointer, salt: DigestSalt? = nil) {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { digest in
            let place = digest.bindMemory(to: UInt8.self).baseAddress
            let input = bytes.bindMemory(to: UInt8.self)
            if let salt {
                withUnsafeBytes(of: salt.words) {
                    let salt = $0.bindMemory(to: UInt8.self)
                    jose_sha256(salt.baseAddress, salt.count, input.baseAddress, input.count, place)
                }
            } else {
                jose_sha256(nil, 0, input.baseAddress, input.count, place)
            }
        }
        self.words = words
    }

    /// The digest of the texts, in this order; different lists cannot have the same input.
    public init(of texts: [String]) {
        self = texts.reduce(Digest256(of: UnsafeRawBufferPointer(start: nil, count: 0))) { digest, text in
            var text = text
            return text.withUTF8 { digest.followed(by: UnsafeRawBufferPointer($0)) }
        }
    }

    /// The digest of this digest, the kind of the next part, and that part. For a list of parts: different lists, or parts of
    /// different kinds, cannot have the same input. Allocates nothing.
    public func followed(by bytes: UnsafeRawBufferPointer, kind: UInt64 = 0) -> Digest256 {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        let before = (self.words.0, self.words.1, self.words.2, self.words.3, kind.littleEndian)
        withUnsafeMutableBytes(of: &words) { digest in
            withUnsafeBytes(of: before) { before in
                let before = before.bindMemory(to: UInt8.self)
                let input = bytes.bindMemory(to: UInt8.self)
                jose_sha256(
                    before.baseAddress, before.count, input.baseAddress, input.count,
                    digest.bindMemory(to: UInt8.self).baseAddress)
            }
        }
        return Digest256(words: words)
    }

    private init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

    /// Passes the 32 bytes, valid during the call only.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withUnsafeBytes(of: words, body)
    }

    /// Reads 64 hexadecimal digits; `nil` for anything else.
    public init?(hex: some Collection<UInt8>) {
        guard hex.count == 64 else { return nil }
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        var isHex = true
        withUnsafeMutableBytes(of: &words) { digest in
            for (index, digit) in hex.enumerated() {
                guard let value = Hex.value(digit) else {
                    isHex = false
                    return
                }
                digest[index / 2] = digest[index / 2] << 4 | value
            }
        }
        guard isHex else { return nil }
        self.words = words
    }

    /// Makes a digest from its 32 bytes; `nil` for another number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
        self.words = words
    }

    /// Makes a digest from the output of OpenSSL: 32 bytes.
    init(code: UnsafeMutableBufferPointer<UInt8>) {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: UnsafeRawBufferPointer(code)) }
        self.words = words
    }

    /// The 64 hexadecimal digits.
    public var hex: String {
        withUnsafeBytes(of: words) { Hex.text($0) }
    }

    /// Appends the 64 hexadecimal digits.
    public func appendHex(to text: inout [UInt8]) {
        withUnsafeBytes(of: words) { for byte in $0 { Hex.append(byte, to: &text) } }
    }

    /// The 32 bytes.
    public var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }

    /// The first byte: for tables.
    public var firstByte: Int { withUnsafeBytes(of: words) { Int($0[0]) } }
}

extension Digest256: Hashable {
    public static func == (left: Digest256, right: Digest256) -> Bool {
        (left.words.0 ^ right.words.0) | (left.words.1 ^ right.words.1) | (left.words.2 ^ right.words.2)
            | (left.words.3 ^ right.words.3) == 0
    }

    /// The first eight bytes are sufficient.
    public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}

/// Random bytes that make digests for one purpose useless for others, and unpredictable outside this process.
public struct DigestSalt: Sendable {
    let words: (UInt64, UInt64, UInt64, UInt64)

    /// Makes 32 new random bytes.
    public init() {
        var random = SystemRandomNumberGenerator()
        words = (random.next(), random.next(), random.next(), random.next())
    }
}

/// Compares secrets.
public enum ConstantTime {
    /// Whether the bytes are equal, in a time that depends only on their number.
    public static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && jose_equal(left, right, left.count) == 1
    }
}
