import HttpWare

/// The field lines of a stored response in one array, behind the URI of its key if it holds one.
///
/// A response is packed as soon as it is received. So its own lines stay those of one owner, and a ware that adds a line copies nothing.
package struct StoredLines: Sendable {
    /// The URI, then the lines as `HttpFields.appendPacked` writes them.
    let bytes: [UInt8]
    /// The number of bytes of the URI; -1 without a key.
    let keyCount: Int
    /// The lines, if they cannot be packed.
    private let unpacked: Unpacked?

    private final class Unpacked: Sendable {
        let fields: HttpFields

        init(_ fields: HttpFields) { self.fields = fields }
    }

    init(_ fields: borrowing HttpFields, under key: CacheKey? = nil) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity((key?.uri.count ?? 0) + fields.lineBytes + 5 * fields.count + 1)
        if let key { bytes += key.uri }
        keyCount = key?.uri.count ?? -1
        unpacked = fields.appendPacked(to: &bytes) ? nil : Unpacked(copy fields)
        self.bytes = bytes
    }

    /// Lines that were packed before; `unpacked` are the lines that cannot be packed.
    init(packed bytes: [UInt8], keyCount: Int, unpacked: HttpFields?) {
        self.bytes = bytes
        self.keyCount = keyCount
        self.unpacked = unpacked.map { Unpacked($0) }
    }

    /// A copy, with room for the fields that an answer adds.
    var fields: HttpFields { unpacked?.fields ?? StoredLines.fields(bytes, keyCount) }

    static func fields(_ bytes: [UInt8], _ keyCount: Int) -> HttpFields {
        HttpFields(packed: bytes, from: max(0, keyCount), sparing: (bytes: 128, lines: 4))
    }

    /// The number of lines.
    var count: Int { unpacked?.fields.count ?? Int(bytes[max(0, keyCount)]) }

    /// The lines, if they cannot be packed.
    var unpackedFields: HttpFields? { unpacked?.fields }

    /// Whether these are the lines of a response that holds this key.
    func areUnder(_ key: CacheKey?) -> Bool {
        guard let uri = key?.uri else { return keyCount < 0 }
        return keyCount == uri.count && bytes.starts(with: uri)
    }
}
