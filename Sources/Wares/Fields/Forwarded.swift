public import HttpWare

/// Tells the origin server the client's address, scheme and host, in `X-Forwarded-For`, `-Proto` and `-Host`, or in
/// `Forwarded`. RFC 7239.
///
/// `-Proto` and `-Host` are those of the first trusted proxy.
public struct Forwarded: Middleware {
    /// The fields that are written.
    public enum Style: String, OptionWord {
        case xForwarded = "x-forwarded"
        case forwarded
        case both
    }

    /// The fields that are written.
    public var style: Style

    /// Further fields that only a trusted peer may send.
    public var remove: [FieldName] {
        get { removed.names }
        set { removed = FieldNameSet(newValue) }
    }
    private var removed: FieldNameSet

    public init(style: Style = .xForwarded, remove: [FieldName] = Forwarded.claims) {
        self.style = style
        removed = FieldNameSet(remove)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        let isTrusted = exchange.isPeerTrusted
        for name in Forwarded.written { check(name, &request, isTrusted) }
        for name in request.fields.candidates(of: removed) { check(name, &request, isTrusted) }
        let address = exchange.peer?.address?.unmapped.withoutScope
        if style != .forwarded { try writeXForwarded(&request, address, exchange) }
        if style != .xForwarded { try writeForwarded(&request, address, exchange) }
        return .pass
    }

    private func check(_ name: FieldName, _ request: inout HttpRequest, _ isTrusted: Bool) {
        if isTrusted { request.fields.removeTwins(of: name) } else { request.fields.remove(name) }
    }

    /// The fields that it writes in one of its styles.
    private static let written: [FieldName] = [.xForwardedFor, .xForwardedProto, .xForwardedHost, .forwarded]

    /// Fields by which proxies and content delivery networks tell the client's address or the URL, and which applications believe.
    public static let claims: [FieldName] =
        ["X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-ProxyUser-IP"] + UrlClaims.places

    private func writeXForwarded(_ request: inout HttpRequest, _ address: IPAddress?, _ exchange: Exchange) throws {
        if let address {
            let before = request.fields[.xForwardedFor] ?? ""
            try request.fields.set(.xForwardedFor, to: before.isEmpty ? "\(address)" : "\(before), \(address)")
        }
        if !request.fields.contains(.xForwardedProto) {
            request.fields.append(exchange.isSecure ? Forwarded.https : Forwarded.http)
        }
        if !request.fields.contains(.xForwardedHost), let authority = request.authority {
            try request.fields.append(.xForwardedHost, "\(authority)")
        }
    }

    private static let http = FieldLine(literal: .xForwardedProto, "http")
    private static let https = FieldLine(literal: .xForwardedProto, "https")

    private func writeForwarded(_ request: inout HttpRequest, _ address: IPAddress?, _ exchange: Exchange) throws {
        var element = "for=\(Forwarded.node(address));proto=\(exchange.isSecure ? "https" : "http")"
        if let authority = request.authority { element += ";host=\(Forwarded.value("\(authority)"))" }
        let before = request.fields[.forwarded] ?? ""
        try request.fields.set(.forwarded, to: before.isEmpty ? element : "\(before), \(element)")
    }

    /// An address as a node name: IPv6 is written in brackets, and therefore in quotes. RFC 7239 §6.
    private static func node(_ address: IPAddress?) -> String {
        guard let address else { return "unknown" }
        return address.isIPv4 ? "\(address)" : "\"[\(address)]\""
    }

    /// A token unchanged, any other text as a quoted string. RFC 7239 §4.
    private static func value(_ text: String) -> String {
        if HttpMethod(text) != nil { return text }  // a method is a token too
        var quoted = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}

extension Forwarded: ConfigurableWare {
    public static let name: WareName = "forwarded"
    public static let about = WareAbout(
        "Tells the origin server the client's address, scheme and host, in `X-Forwarded-For`, `-Proto` and `-Host`, or in `Forwarded`.",
        source: "RFC 7239",
        example: #"""
            - forwarded: { style: both }
            """#,
        details: #"""
            If the connection comes from one of the listener's `trustedProxies`, the received fields are kept and the
            peer's address is appended. From any other peer these fields are removed first, in both styles. So are
            the fields of `remove`: proxies and content delivery networks tell the client's address or the URL in them,
            and applications believe them. The method in fields such as `X-HTTP-Method-Override` stays. A list in
            `remove` replaces the default. The host is the one that the request has at this place of the chain: list
            this ware before wares that change it.
            """#,
        otherNames: ["realIp", "xForwarded", "xForwardedFor", "proxyHeaders"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "style", into: &style,
            doc: "the fields to write: X-Forwarded-For, -Proto and -Host, or Forwarded (RFC 7239), or both")
        options.read("remove", into: &remove, doc: "further fields to remove, unless a trusted proxy sent them")
    }
}
