public import HttpWare

/// Edits the header fields of responses on their way to the client.
///
/// Fields that frame the message or concern one connection belong to the gateway, and are refused at load.
public struct ResponseHeaders: Postware {
    /// The edits, prepared.
    public var edits: FieldEdits
    /// The replacements of parts of values, made before the edits.
    public var replacements: [Replacement] = []
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

    /// A part of a field's values, and its replacement.
    public struct Replacement: Sendable {
        /// The field.
        public let name: FieldName
        /// The pattern of the part; its first match in each value is replaced.
        public let pattern: Pattern
        /// The replacement; `$1` … `$9` are groups, `$0` is the match, `$$` is a dollar sign.
        public let replacement: [UInt8]

        /// Makes a replacement.
        public init(name: FieldName, pattern: Pattern, replacement: String) {
            self.name = name
            self.pattern = pattern
            self.replacement = Array(replacement.utf8)
        }
    }

    /// Throws if a placeholder, or a replacement, produces a byte that is invalid in a field; the client then gets 502.
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        if let statuses, !statuses.contains(response.status.code) { return .pass }
        for one in replacements where response.fields.contains(one.name) {
            try response.fields.changeValues(of: one.name) {
                try one.pattern.replacingFirst(in: $0, with: one.replacement, within: &exchange.patternTime)
            }
        }
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
            - responseHeaders: { replace: [{ name: Location, regex: "^http://old\\.example\\.com/", to: "https://www.example.com/" }] }
            """#,
        details: #"""
            At least one verb is needed. The verbs work as in `requestHeaders`. Placeholders get their values from the
            request. If a placeholder produces a byte that is invalid in a field, the client gets 502.

            `replace` runs first, in the order of its list. In each line of the field, the first match of `regex` is
            replaced with `to`; a line without a match stays as it is. If the result is invalid in a field, or the
            expression takes too long, the client gets 502.
            """#,
        otherNames: ["header", "headers", "addHeader", "responseHeaderModifier"])

    public init(options: inout OptionsReader) {
        edits = FieldEdits(options: &options)
        options.read(
            "statuses", into: &statuses, doc: "edits only responses with these statuses; by default all responses")
        readReplacements(&options)
        if edits.isEmpty, !options.isGiven("replace") {
            options.fail("changes nothing; write set, setIfAbsent, append, remove, rename or replace")
        }
    }

    private static let mostReplacements = 64

    private mutating func readReplacements(_ options: inout OptionsReader) {
        var read: [Replacement] = []
        options.readEach("replace", doc: "replaces a part of each value of a field") { options in
            var name: FieldName?
            var pattern: Pattern?
            var text: String?
            options.read("name", into: &name, doc: "the field; no framing field such as Content-Length")
            options.read("regex", into: &pattern, doc: "expression whose first match in each value is replaced")
            options.read(
                "to", into: &text,
                doc: "replacement for the match; $1 … $9 are groups, $0 is the match, $$ is a dollar sign")
            options.require("name", "regex", "to")
            if let name, FieldEdits.isFraming(name) || name == .host {
                options.fail(
                    at: "name", "\(name) frames the message or concerns one connection; the gateway itself writes it")
            }
            if let text, !text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) {
                options.fail(at: "to", "holds a control character")
            }
            if let name, let pattern, let text {
                read.append(Replacement(name: name, pattern: pattern, replacement: text))
            }
        }
        options.refuseEmpty("replace", "write such as [{ name: Server, regex: /.*, to: \"\" }]")
        if read.count > Self.mostReplacements {
            options.fail(at: "replace", "has \(read.count) members; write at most \(Self.mostReplacements)")
        }
        replacements = read
    }
}
