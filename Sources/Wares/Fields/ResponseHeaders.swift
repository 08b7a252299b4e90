public import HttpWare

/// Edits the header fields of responses on their way to the client.
///
/// The verbs run in the order rename, remove, set, setIfAbsent, append, whatever their order in the file. Placeholders
/// get their values from the request. Fields that frame the message or concern one connection belong to the gateway,
/// and are refused at load.
public struct ResponseHeaders: Postware {
    /// The edits, prepared.
    public var edits: FieldEdits
    /// The statuses of the responses that are edited; `nil` edits all responses.
    public var statuses: StatusSet?

    public init(_ edits: FieldEdits, statuses: StatusSet? = nil) {
        self.edits = edits
        self.statuses = statuses
    }

    /// Edits with fixed values: `ResponseHeaders(remove: ["Server"])`. Fields that frame the message trap.
    public init(
        set: HttpFields = HttpFields(), setIfAbsent: HttpFields = HttpFields(), append: HttpFields = HttpFields(),
        remove: [FieldName] = [], rename: [(from: FieldName, to: FieldName)] = [], statuses: StatusSet? = nil
    ) {
        self.init(
            FieldEdits(set: set, setIfAbsent: setIfAbsent, append: append, remove: remove, rename: rename),
            statuses: statuses)
    }

    /// Throws if a placeholder produces a byte that is invalid in a field; the client then gets 502.
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        if let statuses, !statuses.contains(response.status.code) { return .pass }
        try edits.apply(to: &response, in: exchange)
        return .pass
    }
}

extension ResponseHeaders: ConfigurableWare {
    public static let name: WareName = "responseHeaders"
    public static let chainPlace: ChainPlace? = .fieldEditing
    public static let about = WareAbout(
        "Edits the header fields of responses on their way to the client.", source: "RFC 9110 §5, §7.6.1",
        example: #"""
            - responseHeaders: { remove: [Server, X-Powered-By], set: { X-Content-Type-Options: nosniff } }
            - responseHeaders: { statuses: [5xx], set: { Cache-Control: no-store } }
            """#,
        details: #"""
            At least one verb is needed. The verbs work as in `requestHeaders`. Placeholders get their values from the
            request. If a placeholder produces a byte that is invalid in a field, the client gets 502.
            """#,
        otherNames: ["header", "headers", "addHeader", "responseHeaderModifier"])

    public init(options: inout OptionsReader) {
        edits = FieldEdits(options: &options)
        options.read(
            "statuses", into: &statuses, doc: "edits only responses with these statuses; by default all responses")
        if edits.isEmpty { options.fail("changes nothing; write set, setIfAbsent, append, remove or rename") }
    }
}
