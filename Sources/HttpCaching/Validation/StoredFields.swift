public import HttpWare

/// Which fields of a response are stored, and how a later response changes them. RFC 9111 §3.1, §3.2.
public enum StoredFields {
    /// What is stored of a response's fields: none for one hop (they went when it was received), none that concern a proxy's
    /// own authentication, none that `no-cache` or, in a shared cache, `private` names, and no `Set-Cookie` unless `keepsCookies`.
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

    /// The stored fields, updated by those of a 304 or of a HEAD's response: each name that is there replaces all lines of
    /// that name. RFC 9111 §3.2.
    ///
    /// Not taken over: the length, and what the stored bytes were made by (coding and range).
    public static func updated(_ stored: HttpFields, by update: HttpFields) -> HttpFields {
        var fields = stored
        var seen: Set<FieldName> = []
        for (name, _) in update {
            guard let name = FieldName(name), !fixed.contains(name), !oneHop.contains(name),
                name != authenticationInfo, seen.insert(name).inserted
            else { continue }
            fields.remove(name)
            for value in update.rawValues(of: name) {
                // What was received once can be sent again: the decoder checked it.
                try? fields.append(name, raw: value)
            }
        }
        // An age that the stored response came with is not that of the update.
        if !seen.contains(.age) { fields.remove(.age) }
        return fields
    }

    /// Names that decoders know.
    private static let oneHop: [FieldName] = [
        "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Status", "Connection", "Keep-Alive", "Proxy-Connection",
        "TE",
        "Transfer-Encoding", "Upgrade",
    ]
    private static let knownOneHop = KnownFields(oneHop)
    private static let authenticationInfo: FieldName = "Proxy-Authentication-Info"
    private static let fixed: Set<FieldName> = [.contentLength, .contentEncoding, .contentRange]
}
