import HttpCaching
import HttpWare

/// How a cache asks whether a stored response still holds. RFC 9111 §4.3.1.
enum CacheValidation {
    /// What makes a request conditional, or one for a part.
    static let conditions: [FieldName] = [.ifNoneMatch, .ifModifiedSince, .ifRange, .range]

    /// Takes away what an origin server might read for a condition that the request does not have.
    static func removeTwins(in request: inout HttpRequest) {
        for name in conditions { request.fields.removeTwins(of: name) }
    }

    /// Makes the request ask for another representation than the stored one. What the client has by its own word is asked
    /// about too, so that one answer does for both.
    static func ask(about stored: StoredResponse, in request: inout HttpRequest) {
        let fields = stored.fields
        let own = request.fields.rawValues(of: .ifNoneMatch)
        for name in conditions { request.fields.remove(name) }
        if let line = fields.rawValues(of: .etag).first, stored.validators.etag != nil {
            // What was received once as field values can be sent as one.
            try? request.fields.set(.ifNoneMatch, toRaw: Array(([line] + own).joined(separator: [0x2c, 0x20])))
        }
        if let modified = fields[.lastModified], stored.validators.lastModified != nil {
            try? request.fields.set(.ifModifiedSince, to: modified)
        }
    }
}
