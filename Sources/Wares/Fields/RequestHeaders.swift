public import HttpWare

/// Edits the fields of the request before it goes upstream.
///
/// The verbs act in the order rename, remove, set, setIfAbsent, append, whatever their order in the file. Values may hold
/// placeholders; one that brings a byte which no field value may hold (RFC 9110 §5.5) refuses the request with 400.
/// `Host` can be set, and names another authority then. Fields that frame the message or concern one connection
/// (`Content-Length`, `Transfer-Encoding`, `Connection`, …; RFC 9110 §7.6.1) are the gateway's own, and refused at load.
///
/// | option        | type                                | default | allowed                    |
/// |---------------|-------------------------------------|---------|----------------------------|
/// | `set`         | map of field name to template       | `{}`    | no framing fields          |
/// | `setIfAbsent` | map of field name to template       | `{}`    | no framing fields, no Host |
/// | `append`      | map of field name to template, or a list of them | `{}` | no framing fields, no Host |
/// | `remove`      | list of field names                 | `[]`    | no framing fields, no Host |
/// | `rename`      | map of field name to field name     | `{}`    | no framing fields, no Host |
public struct RequestHeaders: Middleware {
    public var edits: FieldEdits
    /// What the request's `Host`, and with it its authority, becomes.
    public var host: Template?

    public var changesAuthority: Bool { host != nil }

    public init(_ edits: FieldEdits) { self.edits = edits }

    /// Edits with fixed values: `RequestHeaders(set: ["X-App": "todo"], remove: ["Cookie"])`. Fields that frame the message are
    /// a mistake of the code and trap.
    public init(
        set: HttpFields = HttpFields(), setIfAbsent: HttpFields = HttpFields(), append: HttpFields = HttpFields(),
        remove: [FieldName] = [], rename: [(from: FieldName, to: FieldName)] = []
    ) {
        self.init(FieldEdits(set: set, setIfAbsent: setIfAbsent, append: append, remove: remove, rename: rename))
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        do throws(InvalidFieldValue) {
            try edits.apply(to: &request, in: exchange)
        } catch {
            return .abort(with: .problem(.badRequest, "\(error)"))
        }
        return host == nil ? .pass : setHost(&request, in: exchange)
    }

    private func setHost(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let host, let authority = Authority(host.text(request, in: exchange)) else {
            return .abort(with: .problem(.badRequest, "the value for Host is not a host with or without a port"))
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
        "Edits the fields of the request before it goes upstream.", source: "RFC 9110 §5, §7.6.1",
        example: #"""
            - requestHeaders:
                rename: { X-Old-Token: X-Token }
                remove: [X-Debug]
                set: { X-Client-Address: "{client.ip}" }
                setIfAbsent: { Accept: "*/*" }
                append: { X-Seen-By: [gateway, "{exchange.id}"] }
            """#,
        details: #"""
            One of them has to be there. The verbs act in the order rename, remove, set, setIfAbsent, append, whatever their order in the file. To set
            `Host` is to name another authority, which then goes upstream whatever the service's `host` says. A placeholder that brings a byte which no
            field value may hold refuses the request with 400.

            To set, rename or remove a field takes away what the client sent under its twins, with `_` for `-` in any mix: many origin servers read
            `X_User` and `X-User` as one field.
            """#)

    public init(options: inout OptionsReader) {
        var host: Template?
        edits = FieldEdits(options: &options) { template, options in
            if let fixed = template.fixedText, Authority(String(decoding: fixed, as: UTF8.self)) == nil {
                options.fail(at: "set", "\(template.source.quotedForErrors) is not a host with or without a port")
            }
            host = template
        }
        self.host = host
        if edits.isEmpty && host == nil {
            options.fail("says nothing to do; write set, setIfAbsent, append, remove or rename")
        }
    }
}
