/// The methods of IANA's *HTTP Method Registry* that are safe or idempotent, besides the methods that `HttpMethod` has a number for.
/// Registered methods that are neither, such as LOCK, are absent, like unknown ones. RFC 9110 §16.1.
enum RegisteredMethods {
    /// By name; names are case-sensitive.
    static let traits: [String: HttpMethod.Traits] = {
        var traits: [String: HttpMethod.Traits] = [:]
        for name in safe { traits[name] = .safe }
        for name in idempotent { traits[name] = .idempotent }
        return traits
    }()

    /// RFC 9113 §3.4 (PRI), RFC 4918 §9.1, RFC 10008, RFC 3253 §3.6, RFC 5323 §2.
    private static let safe = ["PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH"]

    /// RFC 3253, RFC 3648, RFC 3744, RFC 4437, RFC 4791, RFC 4918, RFC 5842, RFC 2068 §19.6.1.
    private static let idempotent = [
        "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LINK", "MERGE", "MKACTIVITY",
        "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PROPPATCH", "REBIND", "UNBIND",
        "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    ]
}
