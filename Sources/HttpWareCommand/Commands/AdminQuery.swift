/// The query of a request to the admin listener.
struct AdminQuery {
    /// The query with its question mark; empty without parameters.
    let text: String

    /// Makes a query of the parameters that have a value.
    init(_ parameters: [(name: String, value: String?)]) {
        let pairs = parameters.compactMap { name, value in value.map { name + "=" + AdminQuery.encoded($0) } }
        text = pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
    }

    /// Percent-encodes all characters except unreserved ones. RFC 3986 §2.3.
    private static func encoded(_ value: String) -> String {
        var text = ""
        for byte in value.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e:
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                text += digits.utf8.count == 1 ? "%0" + digits : "%" + digits
            }
        }
        return text
    }
}
