/// Percent-encoding. RFC 3986 §2.1.
public enum PercentText {
    // MARK: Writing

    /// Whether the byte is `unreserved`: a letter, a digit or one of `-._~`. RFC 3986 §2.3.
    public static func isUnreserved(_ byte: UInt8) -> Bool { ByteClass.isUnreserved(byte) }

    /// Appends `%` and two digits in upper case.
    @inlinable
    public static func append(_ byte: UInt8, to text: inout [UInt8]) {
        text.append(0x25)
        text.append(Hex.upper(byte >> 4))
        text.append(Hex.upper(byte & 15))
    }

    /// The bytes, percent-encoded unless `keeps` accepts them.
    public static func encoded(
        _ bytes: some Sequence<UInt8>, keeping keeps: (UInt8) -> Bool = PercentText.isUnreserved
    ) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.underestimatedCount)
        for byte in bytes {
            if keeps(byte) { text.append(byte) } else { append(byte, to: &text) }
        }
        return text
    }

    /// A text, percent-encoded except for the ASCII characters that `keeps` accepts.
    public static func text(
        _ text: some StringProtocol, keeping keeps: (UInt8) -> Bool = PercentText.isUnreserved
    ) -> String {
        String(decoding: encoded(text.utf8) { $0 < 0x80 && keeps($0) }, as: UTF8.self)
    }

    /// A text in the form `application/x-www-form-urlencoded`: a space becomes `+`. `keeps` decides about other bytes. WHATWG URL §5.2.
    public static func form(
        _ text: some StringProtocol, keeping keeps: (UInt8) -> Bool = PercentText.isUnreserved
    ) -> String {
        var form = encoded(text.utf8) { $0 == 0x20 || $0 < 0x80 && keeps($0) }
        for place in form.indices where form[place] == 0x20 { form[place] = 0x2b }
        return String(decoding: form, as: UTF8.self)
    }

    // MARK: Reading

    /// Calls `body` with each decoded byte. A percent sign without two digits stands for itself.
    @inlinable
    public static func forEachDecoded(
        _ text: ArraySlice<UInt8>, plusIsSpace: Bool = false, _ body: (UInt8) -> Void
    ) {
        var place = text.startIndex
        while place < text.endIndex {
            let byte = text[place]
            if byte == 0x25, let decoded = Hex.byte(text, at: place + 1) {
                body(decoded)
                place += 3
            } else {
                body(plusIsSpace && byte == 0x2b ? 0x20 : byte)
                place += 1
            }
        }
    }

    /// The decoded bytes of a text. A percent sign without two digits stands for itself.
    public static func decoded(_ text: some Collection<UInt8>, plusIsSpace: Bool = false) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        forEachDecoded(Array(text)[...], plusIsSpace: plusIsSpace) { bytes.append($0) }
        return bytes
    }

    /// The decoded bytes of a text; `nil` if a percent sign has no two digits behind it.
    package static func strictlyDecoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        let text = Array(text)[...]
        for place in text.indices where text[place] == 0x25 && Hex.byte(text, at: place + 1) == nil {
            return nil
        }
        return decoded(text)
    }
}
