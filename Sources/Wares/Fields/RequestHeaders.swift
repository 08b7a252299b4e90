public import HttpWare

/// Edits the header fields of requests before they go upstream.
///
/// Fields that frame the message or concern one connection (RFC 9110 §7.6.1) belong to the gateway, and are refused at
/// load.
public struct RequestHeaders: Middleware {
    /// The edits, prepared.
    public var edits: FieldEdits
    /// The new `Host` of the request, and with it its new authority; `nil` leaves it unchanged.
    public var host: Template?

    public var changesAuthority: Bool { host != nil }

    public init(_ edits: FieldEdits) { self.edits = edits }

    /// Edits with fixed values: `RequestHeaders(set: ["X-App": "todo"], remove: ["Cookie"])`. Fields that frame
    /// the message trap.
    public init(
        set: HttpFields = HttpFields(), setIfAbsent: HttpFields = HttpFields(), append: HttpFields = HttpFields(),
        remove: [FieldName] = [], rename: [(from: FieldName, to: FieldName)] = []
    ) {
        self.init(FieldEdits(set: set, setIfAbsent: setIfAbsent, append: append, remove: remove, rename: rename))
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        do throws(InvalidFieldValue) {
            if edits.addsSecret { exchange.noteSecret() }
            try edits.apply(to: &request, in: exchange)
        } catch {
            return .abort(with: .problem(.badRequest, "\(error)"))
        }
        return host == nil ? .pass : setHost(&request, in: exchange)
    }

    private func setHost(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let host, let authority = Authority(host.text(request, in: exchange)) else {
            return .abort(with: .problem(.badRequest, "the new value of Host is not a valid host"))
        }
        request.setAuthority(authority)
        return .pass
    }
}

extension RequestHeaders: FieldEditingWare {
    public var takenFields: [FieldName] { edits.takenFields }
    public var givenFields: [FieldName] { edits.givenFields }
}

extension RequestHeaders: ConfigurableWare {
    public static let name: WareName = "requestHeaders"
    public static let about = WareAbout(
        "Edits the header fields of requests before they go upstream.", source: "RFC 9110 §5, §7.6.1",
        example: #"""
            - requestHeaders:
                rename: { X-Old-Token: X-Token }
                remove: [X-Debug]
                set: { X-Client-Address: "{client.ip}" }
                setIfAbsent: { Accept: "*/*" }
                append: { X-Seen-By: [gateway, "{exchange.id}"] }
            """#,
        details: #"""
            At least one option is needed. The verbs run in the order rename, remove, set, setIfAbsent, append, whatever
            their order in the file. Setting `Host` changes the authority of the request; it then goes upstream even if
            the service has a `host`. If a placeholder produces a byte that is invalid in a field, the request is
            refused with 400.

            Many origin servers treat `X_User` and `X-User` as the same field. If a field is set, renamed or removed,
            the client's fields of similar names, with `_` in place of any `-`, are therefore removed as well.
            """#,
        otherNames: ["header", "headers", "headerModifier", "requestHeaderModifier", "proxySetHeader"])

    public init(options: inout OptionsReader) {
        var host: Template?
        edits = FieldEdits(options: &options) { template, options in
            if let fixed = template.fixedText, Authority(String(decoding: fixed, as: UTF8.self)) == nil {
                options.fail(
                    at: "set", "\(template.source.quotedForErrors) is not a valid host; write host or host:port")
            }
            host = template
        }
        self.host = host
        if edits.isEmpty && host == nil {
            options.fail("changes nothing; write set, setIfAbsent, append, remove or rename")
        }
    }
}
