import HttpWare

/// Content as a member of JSON: text if that loses nothing, or else base64.
struct HarText {
    let text: String
    let isBase64: Bool

    init(_ bytes: [UInt8], mediaType: String?) {
        if TextBytes.isPlain(bytes), let text = String(validating: bytes, as: UTF8.self) {
            // A reader that applies another charset would decode other bytes, except for ASCII.
            let charset = HarText.charset(mediaType)
            if charset == nil || charset == "utf-8" || charset == "utf8" || bytes.allSatisfy({ $0 < 0x80 }) {
                self.text = text
                isBase64 = false
                return
            }
        }
        text = Base64.encode(bytes)
        isBase64 = true
    }

    /// The `charset` of a media type, in lower case.
    static func charset(_ mediaType: String?) -> String? {
        for part in (mediaType ?? "").lowercased().split(separator: ";").dropFirst() {
            let part = part.drop { $0 == " " || $0 == "\t" }
            guard part.hasPrefix("charset=") else { continue }
            return String(part.dropFirst(8).filter { $0 != "\"" && $0 != " " })
        }
        return nil
    }

    /// The bytes of content that an archive holds as text.
    static func bytes(_ text: String, mediaType: String?) -> [UInt8] {
        if let charset = charset(mediaType), ["iso-8859-1", "latin1", "iso-8859-15", "windows-1252"].contains(charset) {
            let bytes = text.unicodeScalars.map { UInt8(exactly: $0.value) }
            if !bytes.contains(nil) { return bytes.compactMap(\.self) }
        }
        return Array(text.utf8)
    }

    /// Decodes base64 as programs write it: either alphabet, with or without padding, and with white space.
    static func base64(_ text: String) -> [UInt8]? {
        var digits: [UInt8] = []
        digits.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case 0x3d: continue
            case _ where TextBytes.isSpace(byte): continue
            case 0x2d: digits.append(0x2b)
            case 0x5f: digits.append(0x2f)
            default: digits.append(byte)
            }
        }
        return Base64.decode(digits)
    }
}
