/// A value that a template can take from an exchange. Values are as received, still percent-encoded.
public enum Placeholder: Sendable, Hashable {
    case requestMethod
    case requestPath
    case requestHost
    /// The whole URL that the client asked for, as received.
    case requestUrl
    case requestQuery(String)
    /// A field of the request; its name in the case of the file.
    case requestHeader(String)
    /// A capture of the route's path pattern.
    case path(String)
    /// The client's address, with `trustedProxies` and the PROXY protocol taken into account.
    case clientIp
    /// The address of the other end of the connection.
    case peerIp
    /// A claim of the token that `jwt` or `introspect` accepted.
    case jwt(String)
    /// A text that a ware, such as a script, has kept by name.
    case note(String)
    /// The name of the principal that the last authenticating ware found, or else that of the client certificate.
    case principal
    /// The name of the service that the request goes to.
    case service
    case tlsSubject
    case tlsSan
    case exchangeId
    /// The trace that `traceparent` began, or found in the request.
    case traceId
    /// A random value for the scripts of a page, different in each exchange.
    case cspNonce

    private static let plain: [(name: String, placeholder: Placeholder)] = [
        ("request.method", .requestMethod), ("request.path", .requestPath), ("request.host", .requestHost),
        ("request.url", .requestUrl),
        ("client.ip", .clientIp), ("peer.ip", .peerIp), ("principal", .principal), ("service", .service),
        ("tls.subject", .tlsSubject),
        ("tls.san", .tlsSan),
        ("exchange.id", .exchangeId), ("trace.id", .traceId), ("cspNonce", .cspNonce),
    ]
    /// Prefixes that a name of the author's choice follows.
    private static let named = ["request.query.", "request.header.", "path.", "jwt.", "note."]

    /// The starts of all placeholders, up to their first dot.
    static let roots = Set(
        (plain.map(\.name) + named).compactMap { name in name.firstIndex(of: ".").map { String(name[...$0]) } })

    /// Reads the text between the braces.
    init(name: String) throws(OptionMistake) {
        if let plain = Self.plain.first(where: { $0.name == name }) {
            self = plain.placeholder
            return
        }
        guard let prefix = Self.named.first(where: { name.hasPrefix($0) && name.utf8.count > $0.utf8.count }) else {
            let known = Self.plain.map(\.name) + Self.named.map { $0 + "NAME" }
            let near = didYouMean(name, among: known + Self.named.compactMap { Self.near($0, name) })
            throw OptionMistake(
                near.isEmpty
                    ? "write one of \(known.joined(separator: ", ")), or {{ for a literal {"
                    : String(near.dropFirst(2)),
                problem: "\(name.quotedForErrors) is not a placeholder")
        }
        let argument = String(name.dropFirst(prefix.count))
        switch prefix {
        case "request.query.": self = .requestQuery(argument)
        case "path.": self = .path(argument)
        case "jwt.": self = .jwt(argument)
        case "note.": self = .note(argument)
        default:
            guard FieldName(argument) != nil else {
                throw OptionMistake(
                    "write letters, digits and -", problem: "\(argument.quotedForErrors) is not a field name")
            }
            self = .requestHeader(argument)
        }
    }

    /// `request.headers.X` → `request.header.X`, for comparison with the written name.
    private static func near(_ prefix: String, _ name: String) -> String? {
        let parts = name.split(
            separator: ".", maxSplits: prefix.split(separator: ".").count, omittingEmptySubsequences: false)
        guard parts.count == prefix.split(separator: ".").count + 1, let last = parts.last, !last.isEmpty else {
            return nil
        }
        let head = parts.dropLast().joined(separator: ".") + "."
        return nearest(to: head, among: [prefix]).map { $0 + last }
    }
}
