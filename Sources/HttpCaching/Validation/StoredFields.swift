public import HttpWare

/// The fields of a response that are stored, and their update by a later response. RFC 9111 §3.1, §3.2.
public enum StoredFields {
    /// The stored fields of a response. Not stored are fields that concern a proxy's own authentication, fields that
    /// `no-cache` or, in a shared cache, `private` names, and `Set-Cookie` unless `keepsCookies`. Hop-by-hop fields
    /// were already removed on receipt.
    public static func kept(
        _ fields: consuming HttpFields, directives: ResponseDirectives, mode: CacheMode, keepsCookies: Bool = true
    ) -> HttpFields {
        var kept = fields
        if !keepsCookies { kept.remove(.setCookie) }
        kept.remove(knownOneHop)
        kept.remove(authenticationInfo)
        if case .fields(let names) = directives.noCache { for name in names { kept.remove(name) } }
        if mode == .shared, case .fields(let names) = directives.isPrivate { for name in names { kept.remove(name) } }
        return kept
    }

    /// The stored fields, updated by those of a 304 or of the response to a HEAD: each name in the update replaces all
    /// lines of that name. RFC 9111 §3.2. The length, and the fields that describe the stored bytes (coding and range),
    /// are not updated.
    public static func updated(_ stored: HttpFields, by update: HttpFields) -> HttpFields {
        var fields = stored
        var seen: Set<FieldName> = []
        for (name, _) in update {
            guard let name = FieldName(name), !fixed.contains(name), !oneHop.contains(name),
                name != authenticationInfo, seen.insert(name).inserted
            else { continue }
            fields.remove(name)
            for value in update.rawValues(of: name) {
                // Cannot throw: the value was received, so the decoder has checked it.
                try? fields.append(name, raw: value)
            }
        }
        // The stored response's `Age` does not apply to the update.
        if !seen.contains(.age) { fields.remove(.age) }
        return fields
    }

    /// Sets `Date` to the time of receipt if the `message` from which the fields come does not state one. RFC 9110
    /// §6.6.1: a recipient with a clock records that time.
    public static func addDate(_ received: WallTime, to fields: inout HttpFields, statedBy message: HttpFields) {
        // A date is a valid field value.
        if !message.contains(.date) { try? fields.set(.date, to: HttpDate.text(received)) }
    }

    /// Names that decoders know, so that they are removed quickly.
    private static let oneHop: [FieldName] = [
        "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Status", "Connection", "Keep-Alive", "Proxy-Connection",
        "TE",
        "Transfer-Encoding", "Upgrade",
    ]
    private static let knownOneHop = KnownFields(oneHop)
    private static let authenticationInfo: FieldName = "Proxy-Authentication-Info"
    private static let fixed: Set<FieldName> = [.contentLength, .contentEncoding, .contentRange]
}
