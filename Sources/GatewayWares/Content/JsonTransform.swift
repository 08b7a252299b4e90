public import HttpWare

/// Edits JSON content by pointers: sets, removes, renames, moves and keeps members, or applies a JSON Patch.
///
/// Values that no edit changes stay the same byte for byte: numbers, the order of members, escapes.
public struct JsonTransform: EitherSided, ContentEditor {
    private let edits: JsonEdits
    private let editing: ContentEditing

    private static let types = ["application/json", "application/*+json"].compactMap { MediaPattern($0) }

    init(_ edits: JsonEdits, maxBody: ByteCount = .mebibytes(1), onFailure: EditingFailure = .pass) {
        self.edits = edits
        editing = ContentEditing(types: JsonTransform.types, maxBody: maxBody, onFailure: onFailure)
    }

    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        editing.concerns(request) ? editing.maxBody : nil
    }

    public func contentLimit(of response: HttpResponse, in exchange: Exchange) -> Int? {
        editing.extent(response, in: exchange) == .content ? editing.maxBody : nil
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        guard editing.concerns(request) else { return .pass }
        return try editing.edit(&request, in: exchange, by: edit)
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        switch editing.extent(response, in: exchange) {
        case .nothing: return .pass
        case .fields:
            ContentEditing.describe(&response.fields)
            return .pass
        case .content: break
        }
        return try editing.edit(&response, in: exchange, by: edit)
    }

    @Sendable private func edit(_ bytes: [UInt8], within time: Duration) throws -> (bytes: [UInt8]?, note: String?) {
        (try edits.apply(to: bytes, upTo: editing.maxBody), nil)
    }
}

extension JsonTransform: ConfigurableWare {
    public static let name: WareName = "jsonTransform"
    public static let chainPlace: ChainPlace? = .contentEditing
    public static let about = WareAbout(
        "Edits JSON content by pointers: sets, removes, renames, moves and keeps members, or applies a JSON Patch.",
        source: "RFC 6901, RFC 6902, RFC 8259; KrakenD, Kong",
        example: #"""
            - jsonTransform:
                remove: [/user/password, /items/*/internal]
                rename: { /user/mail: email }
                set: { /source: gateway, /meta/version: 2 }
            - jsonTransform: { keep: [/id, /items/*/name], onFailure: refuse }
            """#,
        details: #"""
            Among the middlewares the ware edits requests, among the postwares responses. It acts on `application/json` and
            `application/*+json`.

            Pointers are written as in RFC 6901: `/items/0/name`. `*` stands for each member of an object and for each element of
            an array. A pointer that leads to nothing changes nothing. The edits are done in the order `keep`, `remove`,
            `rename`, `move`, `set`, `patch`, whatever their order in the file. `keep` also removes values in place of which it
            expects an object or an array. `set` adds missing objects on its way; in an array, `-` is the place behind the last element.
            In `set` and `patch`, unquoted numbers, `true`, `false` and `null` keep their type. In `move`, a `*` must stand in the
            beginning that both pointers have in common.

            All that is not edited stays as it was written: numbers with all their digits, the order of members, and
            escapes. An object or array that changes is written without white space between its members.

            If the content is larger than `maxBody`, is not JSON in valid UTF-8, has two members of the same name where an edit
            looks, is nested more than 64 levels deep, or if the patch cannot be applied, `onFailure` decides. To keep something from clients, use
            `onFailure: refuse`. Codings, `ETag`, digests and long content are treated as by `rewriteBody`; partial content is never
            edited.
            """#,
        otherNames: [
            "jsonRewrite", "bodyTransformer", "requestTransformer", "responseTransformer", "transform", "jsonPatch",
        ])

    public init(options: inout OptionsReader) {
        let edits = JsonEdits(options: &options)
        var maxBody = ByteCount.mebibytes(1)
        var onFailure = EditingFailure.pass
        options.read(
            "maxBody", into: &maxBody, in: .bytes(1)...RewriteRule.largestBody,
            doc: "maximum content to edit, decoded and also after the edits")
        options.read(
            "onFailure", into: &onFailure,
            doc:
                "the treatment of content that cannot be edited: pass sends it unchanged, refuse answers 413, 415 or 400 for requests and 502 for responses"
        )
        if edits.isEmpty, !options.hasErrors {
            options.fail("changes nothing; write set, remove, rename, move, keep or patch")
        }
        self.init(edits, maxBody: maxBody, onFailure: onFailure)
    }
}
