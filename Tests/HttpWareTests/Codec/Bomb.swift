import CZlib

@testable import HttpWare

/// Content that is short while it is coded, and long when it is decoded.
enum Bomb {
    static let codings = ["gzip", "deflate", "br", "zstd"]

    /// A text, repeated up to that length, with codings in the order in which they are applied.
    static func make(_ codings: [String], of text: String = "\0", count: Int) throws -> [UInt8] {
        let text = Array(text.utf8)
        var bytes = [UInt8](repeating: text[0], count: count)
        if text.count > 1 { for index in bytes.indices { bytes[index] = text[index % text.count] } }
        for coding in codings { bytes = try encode(bytes, coding) }
        return bytes
    }

    static func encode(_ bytes: [UInt8], _ coding: String) throws -> [UInt8] {
        struct NoMemory: Error {}
        if coding == "deflate" {
            var length = compressBound(UInt(bytes.count))
            var coded = [UInt8](repeating: 0, count: Int(length))
            guard compress2(&coded, &length, bytes, UInt(bytes.count), 9) == Z_OK else { throw NoMemory() }
            return Array(coded.prefix(Int(length)))
        }
        guard let encoder = ContentCoding(rawValue: coding)?.makeEncoder(level: 9) else { throw NoMemory() }
        var coded: [UInt8] = []
        try bytes.withUnsafeBytes { try encoder.encode($0, .finish, into: &coded) }
        return coded
    }
}
