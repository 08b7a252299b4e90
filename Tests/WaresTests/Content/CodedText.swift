@testable import HttpWare

/// Contents with a coding, for tests.
enum CodedText {
    static func encode(_ text: String, _ coding: ContentCoding) throws -> [UInt8] {
        try encode(Array(text.utf8), coding)
    }

    static func encode(_ bytes: [UInt8], _ coding: ContentCoding) throws -> [UInt8] {
        struct NoMemory: Error {}
        guard let encoder = coding.makeEncoder(level: 4) else { throw NoMemory() }
        var coded: [UInt8] = []
        try bytes.withUnsafeBytes { try encoder.encode($0, .finish, into: &coded) }
        return coded
    }

    /// The text without the codings of `Content-Encoding`.
    static func decode(_ content: HttpContent, _ fields: HttpFields) throws -> String {
        struct Unknown: Error {}
        guard let decoder = ContentDecoder(fields.values(of: .contentEncoding)) else { throw Unknown() }
        var text: [UInt8] = []
        guard try decoder.decode(content.bytes ?? [], into: &text, upTo: 64 << 20) else { throw Unknown() }
        try decoder.finish()
        return String(decoding: text, as: UTF8.self)
    }
}
