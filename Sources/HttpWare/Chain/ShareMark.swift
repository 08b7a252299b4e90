/// A field that is added to the response, so that the client keeps using the same share, or the same endpoint.
struct ShareMark {
    let name: FieldName
    let value: [UInt8]

    /// Adds the mark to a response, and forbids shared caches to store that response, because they would give the mark to
    /// other clients. RFC 9111 §5.2.2.7; a targeted field counts instead of `Cache-Control`, RFC 9213 §2.2.
    func add(to fields: inout HttpFields) {
        fields.appendLine(name, value)
        for field in [FieldName.cacheControl, ShareMark.targeted]
        where field == .cacheControl || fields.contains(field) {
            let isPrivate = fields.listMembers(of: field).contains {
                let member = $0.lowercased()
                return member == "private" || member == "no-store"
            }
            if !isPrivate { fields.append(ShareMark.isPrivate[field == .cacheControl ? 0 : 1]) }
        }
    }

    private static let targeted: FieldName = "CDN-Cache-Control"
    private static let isPrivate = [
        FieldLine(literal: .cacheControl, "private"), FieldLine(literal: targeted, "private"),
    ]
}
