package import HttpWare

/// How a cache asks whether a stored response still holds. RFC 9111 §4.3.1.
package enum CacheValidation {
    /// What makes a request conditional, or one for a part.
    package static let conditions: [FieldName] = [.ifNoneMatch, .ifModifiedSince, .ifRange, .range]

    /// Takes away what an origin server might read for a condition that the request does not have.
    package static func removeTwins(in request: inout HttpRequest) {
        guard request.fields.hasUnderscores else { return }
        for name in conditions { request.fields.removeTwins(of: name) }
    }

    /// Makes the request ask for another representation than the stored one. What the client has by its own word is asked
    /// about too, so that one answer does for both.
    package static func ask(about stored: StoredResponse, in request: inout HttpRequest) {
        let fields = stored.fields
        let own = request.fields.rawValues(of: .ifNoneMatch)
        for name in conditions { request.fields.remove(name) }
        if let line = fields.rawValues(of: .etag).first, let tag = stored.validators.etag {
            // A star would ask about any representation, and stands alone.
            var lines = own.contains(where: Preconditions.isAny) ? [] : own
            if !EntityTag.list(lines).contains(where: { $0.isWeaklyEqual(to: tag) }) { lines.insert(line, at: 0) }
            // What was received once as field values can be sent as one.
            try? request.fields.set(.ifNoneMatch, toRaw: Array(lines.joined(separator: [0x2c, 0x20])))
        }
        if let modified = fields[.lastModified], stored.validators.lastModified != nil {
            try? request.fields.set(.ifModifiedSince, to: modified)
        }
    }

    /// Whether such a 304 may be about the client's own copy, and not about the stored response: it names no entity tag, and
    /// the client named another tag. RFC 9111 §4.3.4.
    package static func isAmbiguous(_ answer: HttpFields, about stored: StoredResponse, client: HttpFields) -> Bool {
        guard !answer.contains(.etag), let tag = stored.validators.etag else { return false }
        return EntityTag.list(client.rawValues(of: .ifNoneMatch)).contains { !$0.isWeaklyEqual(to: tag) }
    }
}
