package import HttpWare

/// How a cache validates a stored response. RFC 9111 §4.3.1.
package enum CacheValidation {
    /// The fields that make a request conditional, or ask for a part.
    package static let conditions: [FieldName] = [.ifNoneMatch, .ifModifiedSince, .ifRange, .range]

    /// Removes fields that an origin server could take for a condition of the request (twins).
    package static func removeTwins(in request: inout HttpRequest) {
        guard request.fields.hasUnderscores else { return }
        for name in conditions { request.fields.removeTwins(of: name) }
    }

    /// Makes the request ask for a representation that differs from the stored one. The client's own entity tags are kept,
    /// so that one answer serves both.
    package static func ask(about stored: StoredResponse, in request: inout HttpRequest) {
        let fields = stored.fields
        let own = request.fields.rawValues(of: .ifNoneMatch)
        for name in conditions { request.fields.remove(name) }
        if let line = fields.rawValues(of: .etag).first, let tag = stored.validators.etag {
            // A star would match any representation, and must be the only value.
            var lines = own.contains(where: Preconditions.isAny) ? [] : own
            if !EntityTag.list(lines).contains(where: { $0.isWeaklyEqual(to: tag) }) { lines.insert(line, at: 0) }
            // Cannot throw: the values were received as field values.
            try? request.fields.set(.ifNoneMatch, toRaw: Array(lines.joined(separator: [0x2c, 0x20])))
        }
        if let modified = fields[.lastModified], stored.validators.lastModified != nil {
            try? request.fields.set(.ifModifiedSince, to: modified)
        }
    }

    /// Whether such a 304 could be about the client's own copy instead of the stored response: it has no entity tag, and the
    /// client named another tag. RFC 9111 §4.3.4.
    package static func isAmbiguous(_ answer: HttpFields, about stored: StoredResponse, client: HttpFields) -> Bool {
        guard !answer.contains(.etag), let tag = stored.validators.etag else { return false }
        return EntityTag.list(client.rawValues(of: .ifNoneMatch)).contains { !$0.isWeaklyEqual(to: tag) }
    }
}
