import HttpWare

/// A user and a password as `Authorization` or `Proxy-Authorization` carries them. RFC 7617 §2.
public struct BasicCredentials: Sendable {
    public let user: String
    public let password: [UInt8]

    /// The longest that is read, in bytes and encoded.
    static let longest = 4096

    /// Reads what stands behind `Basic`; `nil` when it is no base64 of `user:password` in UTF-8, or holds a control character:
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

/// The value of a field with credentials, taken apart. RFC 9110 §11.4.
public enum AuthorizationValue {
    /// What follows the scheme, if it is this one, in any case; `nil` for another scheme, or none.
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
