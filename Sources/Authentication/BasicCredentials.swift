import HttpWare

/// A user and a password, as in `Authorization` or `Proxy-Authorization`. RFC 7617 §2.
public struct BasicCredentials: Sendable {
    public let user: String
    public let password: [UInt8]

    /// The maximum length in bytes, encoded.
    static let longest = 4096

    /// Reads the text after `Basic`. `nil` if it is not Base64 of `user:password` in UTF-8, or contains a control character:
    /// "The user-id and password MUST NOT contain any control characters".
    public init?(_ encoded: some BidirectionalCollection<UInt8>) {
        guard encoded.count <= Self.longest, let bytes = Base64.decode(encoded),
            let colon = bytes.firstIndex(of: 0x3a), !bytes.contains(where: { $0 < 0x20 || $0 == 0x7f }),
            let user = String(validating: bytes[..<colon], as: UTF8.self)
        else { return nil }
        self.user = user
        password = Array(bytes[(colon + 1)...])
    }
}

/// Parses the value of a field with credentials. RFC 9110 §11.4.
public enum AuthorizationValue {
    /// The text after the scheme, if the scheme is this one, in upper or lower case; `nil` if it is another or missing.
    public static func credentials(
        of value: UnsafeRawBufferPointer, scheme: StaticString
    ) -> UnsafeRawBufferPointer? {
        let count = scheme.utf8CodeUnitCount
        guard value.count > count, value[count] == 0x20 else { return nil }
        for index in 0..<count {
            let byte = value[index]
            guard (byte &- 0x41 < 26 ? byte | 0x20 : byte) == scheme.utf8Start[index] else { return nil }
        }
        var start = count
        while start < value.count, value[start] == 0x20 { start += 1 }
        return UnsafeRawBufferPointer(rebasing: value[start...])
    }
}
