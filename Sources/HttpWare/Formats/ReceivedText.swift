/// Bytes of a peer as text, without loss: UTF-8, or else ISO 8859-1, which browsers assume. RFC 9110 §5.5.
public enum ReceivedText {
    /// The text of these bytes. Invalid UTF-8 is read as ISO 8859-1.
    public static func text(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var text = ""
        for byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
        return text
    }

    /// The bytes of a part of a target as text. If they are not UTF-8, those beyond ASCII are percent-encoded. RFC 3986 §2.1.
    static func target(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(decoding: PercentText.encoded(Array(bytes)) { $0 < 0x80 }, as: UTF8.self)
    }

    /// The bytes of a target URI as text. Bytes that are not UTF-8, spaces and control characters are percent-encoded. RFC 3986
    /// §2.1.
    public static func target(_ bytes: [UInt8]) -> String {
        let isPlain = bytes.allSatisfy { $0 > 0x20 && $0 != 0x7f }
        let isUtf8 = String(validating: bytes, as: UTF8.self) != nil
        if isPlain, isUtf8 { return String(decoding: bytes, as: UTF8.self) }
        let text = PercentText.encoded(bytes) { $0 > 0x20 && $0 < 0x7f || $0 >= 0x80 && isUtf8 }
        return String(decoding: text, as: UTF8.self)
    }
}
