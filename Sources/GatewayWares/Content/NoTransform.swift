import HttpWare

extension HttpFields {
    /// Whether `Cache-Control` forbids changes of the content: `no-transform`, RFC 9111 §5.2.1.6 and §5.2.2.6.
    var forbidsTransform: Bool {
        contains(.cacheControl)
            && values(of: .cacheControl).contains { value in
                value.utf8.split(separator: 0x2c).contains { directive in
                    // Blanks count nowhere: a directive has none, and a reader may skip them.
                    var left = HttpFields.noTransform[...]
                    for byte in directive where byte != 0x20 && byte != 0x09 {
                        guard let next = left.popFirst(), next == byte | 0x20 else { return false }
                    }
                    return left.isEmpty
                }
            }
    }

    private static let noTransform = Array("no-transform".utf8)
}
