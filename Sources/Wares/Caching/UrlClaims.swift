import HttpCaching
import HttpWare

/// The fields in which a client names the URL that it asked for, or its method. An origin server may believe them, and make its response
/// from them: links, redirects, or the page of another path. So responses are shared only between requests with the same claims.
enum UrlClaims {
    /// The claims of a request that an untrusted peer sent and that no ware has removed, as bytes; `nil` without any.
    ///
    /// A host that is the request's own, and the addresses in `Forwarded`, do not count.
    static func bytes(of request: borrowing HttpRequest, in exchange: Exchange) -> [UInt8]? {
        // Almost every request ends here.
        guard request.fields.mayContain(claims) || request.fields.mayHaveTwins, !exchange.isPeerTrusted else {
            return nil
        }
        var bytes: [UInt8] = []
        for name in request.fields.candidates(of: claims) {
            for value in request.fields.standingValues(of: name) {
                if name == .xForwardedHost, isOwnHost(value, of: request) { continue }
                let claim = name == .forwarded ? withoutAddresses(value) : value
                // A value contains no line feed, and a name no colon.
                if !claim.isEmpty { bytes += Array(name.text.utf8) + [0x3a] + claim + [0x0a] }
            }
        }
        return bytes.isEmpty ? nil : bytes
    }

    private static func isOwnHost(_ value: [UInt8], of request: borrowing HttpRequest) -> Bool {
        request.authority.map { $0.description.lowercased() == String(decoding: value, as: UTF8.self).lowercased() }
            ?? false
    }

    /// A `Forwarded` without the parts that name addresses. A reader of the field ends a part at these separators if they are not
    /// quoted. A quoted separator only makes more text count. RFC 7239 §4.
    private static func withoutAddresses(_ value: [UInt8]) -> [UInt8] {
        let parts = value.split { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") }
        let counted = parts.filter { part in
            let text = String(decoding: part, as: UTF8.self).lowercased().drop { $0 == " " || $0 == "\t" }
            return !text.isEmpty && !text.hasPrefix("for=") && !text.hasPrefix("by=")
        }
        return Array(counted.joined(separator: [UInt8(ascii: ";")]))
    }

    /// The fields in which proxies and applications tell scheme, host, port and path, and which frameworks believe.
    static let places: [FieldName] = [
        "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Path", "X-Forwarded-Uri", "X-Forwarded-Url",
        "X-Forwarded-Server", "X-Forwarded-Scheme", "X-Forwarded-Protocol", "X-Forwarded-Ssl", "X-Forwarded-Https",
        "X-Host", "X-Host-Override", "X-HTTP-Host-Override", "X-Original-Host", "X-Original-Forwarded-Host",
        "X-Rewrite-Host", "X-Real-Host", "X-Envoy-Original-Host",
        "X-Scheme", "X-Url-Scheme", "X-Original-Scheme", "X-Original-Proto", "X-Original-Port", "X-Proxied-Https",
        "Front-End-Https", "X-ARR-SSL", "WL-Proxy-SSL", "X-AppEngine-Https", "CloudFront-Forwarded-Proto", "CF-Visitor",
        "X-Original-URL", "X-Original-URI", "X-Original-Path", "X-Original-Prefix", "X-Rewrite-URL", "X-Rewrite-URI",
        "X-Envoy-Original-Path", "X-MS-Original-URL", "X-WAWS-Unencoded-URL", "X-Replaced-Path", "X-Script-Name",
        "X-Ingress-Path", "X-Matched-Path", "X-Invoke-Path", "X-Invoke-Query",
    ]

    /// The fields in which a client names another method, and which frameworks believe.
    private static let methods: [FieldName] = [
        "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method", "X-Forwarded-Method",
    ]

    private static let claims = FieldNameSet([.xForwardedHost, .xForwardedProto, .forwarded] + places + methods)
}
