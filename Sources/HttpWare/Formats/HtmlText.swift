/// Text within HTML.
package enum HtmlText {
    /// Appends a text so that it contains no markup, for HTML content and quoted attributes.
    package static func append(_ text: String, to page: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): page += "&amp;".utf8
            case UInt8(ascii: "<"): page += "&lt;".utf8
            case UInt8(ascii: ">"): page += "&gt;".utf8
            case UInt8(ascii: "\""): page += "&quot;".utf8
            case UInt8(ascii: "'"): page += "&#39;".utf8
            case UInt8(ascii: "`"): page += "&#96;".utf8
            default: page.append(byte)
            }
        }
    }

    /// A text without markup.
    package static func escaped(_ text: String) -> String {
        var page: [UInt8] = []
        append(text, to: &page)
        return String(decoding: page, as: UTF8.self)
    }
}
