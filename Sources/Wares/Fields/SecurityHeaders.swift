public import HttpWare

/// Adds the fields by which browsers protect a site, such as `Content-Security-Policy` and `X-Frame-Options`.
public struct SecurityHeaders: Postware {
    /// The value of `X-Frame-Options`. RFC 7034.
    public enum Frame: String, OptionWord {
        /// No site may show the page in a frame.
        case deny = "DENY"
        /// Only pages of the same origin may show the page in a frame.
        case sameOrigin = "SAMEORIGIN"
        /// The field is not added.
        case off
    }

    /// Fields whose value never changes.
    private var lines: [FieldLine] = []
    /// Fields with placeholders.
    private var made: [(name: FieldName, value: Template)] = []
    /// `Strict-Transport-Security`, which is added only for clients that use TLS. RFC 6797 §7.2.
    private var hsts: FieldLine?
    /// Whether fields of the response are replaced.
    public private(set) var override = false

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        if response.status == .switchingProtocols { return .pass }
        for line in lines { add(line, to: &response) }
        if let hsts, exchange.isClientSecure { add(hsts, to: &response) }
        for (name, value) in made where override || !response.fields.contains(name) {
            try response.fields.set(name, to: response.text(value, in: exchange))
        }
        return .pass
    }

    private func add(_ line: FieldLine, to response: inout HttpResponse) {
        if override || !response.fields.contains(line.name) { response.fields.set(line) }
    }
}

extension SecurityHeaders: ConfigurableWare {
    public static let name: WareName = "securityHeaders"
    public static let chainPlace: ChainPlace? = .fieldEditing
    public static let about = WareAbout(
        "Adds the fields by which browsers protect a site, such as `Content-Security-Policy` and `X-Frame-Options`.",
        source: "RFC 6797, RFC 7034, CSP Level 3, helmet",
        example: #"""
            - securityHeaders:
                hsts: max-age=31536000; includeSubDomains
                csp: "default-src 'self'; script-src 'nonce-{cspNonce}'"
                referrer: strict-origin-when-cross-origin
                permissions: camera=(), microphone=()
                crossOrigin: { opener: same-origin }
            """#,
        details: #"""
            Values are sent as they are written. A field that the response has already is kept; with `override`, it is
            replaced. Without options, responses get `X-Content-Type-Options: nosniff` and `X-Frame-Options: DENY`.

            `Strict-Transport-Security` is sent only to clients that use TLS (RFC 6797 §7.2): with the gateway, or with a
            trusted proxy that says so in `X-Forwarded-Proto`.

            `{cspNonce}` is a new random value in each exchange. The page needs the same value: give it to the origin
            server with `requestHeaders: { set: { X-Csp-Nonce: "{cspNonce}" } }`. A cache stores the page with the value
            of one exchange, so do not cache pages that contain it.
            """#,
        otherNames: ["helmet", "secureHeaders", "hsts", "frameOptions"])

    public init(options: inout OptionsReader) {
        func add(_ name: FieldName, _ text: String?, _ key: String) {
            guard let text else { return }
            guard !text.isEmpty, let line = try? FieldLine(name, text) else {
                options.fail(at: key, "is empty, or contains a control character, or a space at its ends")
                return
            }
            lines.append(line)
        }
        func make(_ name: FieldName, _ template: Template?, _ key: String) {
            guard let template else { return }
            if template.segments.isEmpty {
                options.fail(at: key, "is empty; write a policy such as default-src 'self'")
                return
            }
            switch FieldEdits.value(name, template, key, &options) {
            case .fixed(let line): lines.append(line)
            case .made(let name, let value): made.append((name, value))
            case nil: break
            }
        }
        var hsts: String?
        var csp: Template?
        var reportOnly: Template?
        var frame = Frame.deny
        var referrer: String?
        var permissions: String?
        var nosniff = true
        options.read(
            "hsts", into: &hsts, doc: "Strict-Transport-Security, such as max-age=31536000; sent only over TLS")
        options.read("csp", into: &csp, doc: "Content-Security-Policy; may contain the placeholder {cspNonce}")
        options.read(
            "cspReportOnly", into: &reportOnly,
            doc: "Content-Security-Policy-Report-Only: browsers report what it would refuse, and refuse nothing")
        options.read("frame", into: &frame, doc: "X-Frame-Options: who may show the page in a frame; off adds no field")
        options.read("referrer", into: &referrer, doc: "Referrer-Policy, such as no-referrer")
        options.read("permissions", into: &permissions, doc: "Permissions-Policy, such as camera=(), geolocation=()")
        options.read("nosniff", into: &nosniff, doc: "adds X-Content-Type-Options: nosniff")
        var opener: String?
        var embedder: String?
        var resource: String?
        options.read("crossOrigin", doc: "the fields that separate the page from other origins") { options in
            options.read("opener", into: &opener, doc: "Cross-Origin-Opener-Policy, such as same-origin")
            options.read("embedder", into: &embedder, doc: "Cross-Origin-Embedder-Policy, such as require-corp")
            options.read("resource", into: &resource, doc: "Cross-Origin-Resource-Policy, such as same-site")
        }
        options.read(
            "override", into: &override, doc: "replaces fields of the response; otherwise they are kept")
        if let hsts {
            let hasAge = hsts.split(separator: ";").contains { part in
                let pair = part.filter { $0 != " " && $0 != "\"" }.lowercased()
                return pair.hasPrefix("max-age=") && pair.utf8.count > 8
                    && pair.utf8.dropFirst(8).allSatisfy { (0x30...0x39).contains($0) }
            }
            if hasAge, let line = try? FieldLine("Strict-Transport-Security", hsts) {
                self.hsts = line
            } else {
                options.fail(at: "hsts", "has no max-age; write, for example, max-age=31536000; includeSubDomains")
            }
        }
        if nosniff { add("X-Content-Type-Options", "nosniff", "nosniff") }
        if frame != .off { add("X-Frame-Options", frame.rawValue, "frame") }
        add("Referrer-Policy", referrer, "referrer")
        add("Permissions-Policy", permissions, "permissions")
        add("Cross-Origin-Opener-Policy", opener, "crossOrigin")
        add("Cross-Origin-Embedder-Policy", embedder, "crossOrigin")
        add("Cross-Origin-Resource-Policy", resource, "crossOrigin")
        make("Content-Security-Policy", csp, "csp")
        make("Content-Security-Policy-Report-Only", reportOnly, "cspReportOnly")
        if lines.isEmpty, made.isEmpty, self.hsts == nil, hsts == nil {
            options.fail("adds nothing; remove it, or write csp, hsts or another field")
        }
    }
}
