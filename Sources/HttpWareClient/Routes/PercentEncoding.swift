/// Percent-encoding for request targets. RFC 3986 §2.1.
enum PercentEncoding {
    /// Appends the UTF-8 bytes of a text. All except `unreserved` (RFC 3986 §2.3) become `%XX`.
    static func append(_ text: some StringProtocol, to result: inout String) {
        for byte in text.utf8 { append(byte, to: &result, keeps: isUnreserved) }
    }

    /// Appends a text in the form `application/x-www-form-urlencoded`: a space becomes `+`. WHATWG URL §5.2.
    static func appendForm(_ text: some StringProtocol, to result: inout String) {
        for byte in text.utf8 {
            if byte == 0x20 { result += "+" } else { append(byte, to: &result, keeps: isUnreserved) }
        }
    }

    private static func append(_ byte: UInt8, to result: inout String, keeps: (UInt8) -> Bool) {
        if keeps(byte) {
            result.unicodeScalars.append(Unicode.Scalar(byte))
        } else {
            result += byte < 16 ? "%0" : "%"
            result += String(byte, radix: 16, uppercase: true)
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: true
        default: false
        }
    }
}
