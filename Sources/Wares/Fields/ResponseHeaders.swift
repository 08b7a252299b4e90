public import HttpWare

/// Edits the fields of the response on its way back.
///
/// The verbs act in the order rename, remove, set, setIfAbsent, append, whatever their order in the file. Placeholders are
/// filled from the request. Fields that frame the message or concern one connection are the gateway's own, and refused at load.
///
/// | option        | type                                | default | allowed           |
/// |---------------|-------------------------------------|---------|-------------------|
/// | `set`         | map of field name to template       | `{}`    | no framing fields |
/// | `setIfAbsent` | map of field name to template       | `{}`    | no framing fields |
/// | `append`      | map of field name to template, or a list of them | `{}` | no framing fields |
/// | `remove`      | list of field names                 | `[]`    | no framing fields |
/// | `rename`      | map of field name to field name     | `{}`    | no framing fields |
/// | `statuses`    | set of statuses                     | all     |                   |
public struct ResponseHeaders: Postware {
    public var edits: FieldEdits
    /// The statuses whose responses are edited; `nil` is all.
    public var statuses: StatusSet?

    public init(_ edits: FieldEdits, statuses: StatusSet? = nil) {
        self.edits = edits
        self.statuses = statuses
    }

    /// Edits with fixed values: `ResponseHeaders(remove: ["Server"])`. Fields that frame the message are a mistake of the code
    /// and trap.
    public init(
        set: HttpFields = HttpFields(), setIfAbsent: HttpFields = HttpFields(), append: HttpFields = HttpFields(),
        remove: [FieldName] = [], rename: [(from: FieldName, to: FieldName)] = [], statuses: StatusSet? = nil
    ) {
        self.init(
            FieldEdits(set: set, setIfAbsent: setIfAbsent, append: append, remove: remove, rename: rename),
            statuses: statuses)
    }

    /// Throws when a placeholder brings a byte that no field value may hold; the response is then refused (502).
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        if let statuses, !statuses.contains(response.status.code) { return .pass }
        try edits.apply(to: &response, in: exchange)
        return .pass
    }
}

extension ResponseHeaders: ConfigurableWare {
    public static let name: WareName = "responseHeaders"
    public static let about = WareAbout(
        "Edits the fields of the response on its way back.", source: "RFC 9110 §5, §7.6.1",
        example: #"""
            - responseHeaders: { remove: [Server, X-Powered-By], set: { X-Content-Type-Options: nosniff } }
            - responseHeaders: { statuses: [5xx], set: { Cache-Control: no-store } }
            """#,
        details: #"""
            As `requestHeaders`; one of the verbs has to be there. Placeholders are filled from the request. A placeholder that brings a byte which no field
            value may hold makes the response a 502.
            """#)

    public init(options: inout OptionsReader) {
        edits = FieldEdits(options: &options)
        options.read("statuses", into: &statuses, doc: "edits only responses with one of these")
        if edits.isEmpty { options.fail("says nothing to do; write set, setIfAbsent, append, remove or rename") }
    }
}
