public import HttpWare

/// Replaces texts in the content of responses.
///
/// Content of other types, partial content, and responses with `no-transform` are never changed.
public struct RewriteBody: Postware, ContentEditor {
    private let rewriting: BodyRewriting

    /// The default media types that are rewritten.
    public static let usualTypes = BodyRewriting.usualTypes

    /// Rewrites complete content of at most `maxBody`. With `streams`, content of any size is rewritten while it passes, without
    /// the rules that have patterns.
    public init(
        rules: [RewriteRule], types: [MediaPattern] = usualTypes, maxBody: ByteCount = .mebibytes(1),
        streams: Bool = false, onFailure: EditingFailure = .pass
    ) {
        rewriting = BodyRewriting(
            rules: rules, types: types, maxBody: maxBody, streams: streams, onFailure: onFailure)
    }

    public func contentLimit(of response: HttpResponse, in exchange: Exchange) -> Int? {
        guard !rewriting.streams, !response.isEventStream else { return nil }
        return rewriting.editing.extent(response, in: exchange) == .content ? rewriting.editing.maxBody : nil
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        switch rewriting.editing.extent(response, in: exchange) {
        case .nothing: return .pass
        case .fields:
            ContentEditing.describe(&response.fields)
            return .pass
        case .content: break
        }
        if rewriting.streams {
            let codings = response.fields.listMembers(of: .contentEncoding)
            guard let filter = RewrittenContent(rewriting.rules, codings: codings, rewriting.editing) else {
                try rewriting.editing.failed(EditingFault.unknownCoding, ofResponseIn: exchange)
                return .pass
            }
            ContentEditing.describe(&response.fields, coding: filter.coding)
            exchange.responseContentChanges()
            exchange.filterResponseContent(with: filter)
            return .pass
        }
        // Never collected: events do not end while the client listens.
        if response.isEventStream { return .pass }
        return try rewriting.editing.edit(&response, in: exchange, by: rewriting.rewrite)
    }
}

extension HttpResponse {
    fileprivate var isEventStream: Bool { mediaType == ContentEditing.events }
}

extension RewriteBody: ConfigurableWare {
    public static let name: WareName = "rewriteBody"
    public static let chainPlace: ChainPlace? = .contentEditing
    public static let about = WareAbout(
        "Replaces texts in the content of responses.",
        source: "Caddy replace-response, nginx sub_filter; RFC 9110 §8.4, §8.8, RFC 9530",
        example: #"""
            - rewriteBody: { rules: [{ find: "http://internal.example", replace: "https://www.example.com" }] }
            - rewriteBody:
                types: [text/html]
                rules:
                  - { regex: "(?i)</body>", replace: "<p>test system</p></body>", max: 1 }
                onFailure: refuse
            """#,
        details: #"""
            Each rule replaces a text (`find`) or what a regular expression matches (`regex`), from the beginning to the
            end of the content. Texts are compared byte by byte; configuration files are UTF-8.

            The response waits until its content is whole. Content with a coding (gzip, Brotli, Zstandard, deflate) is decoded
            first. If something was replaced, gzip, Brotli and Zstandard are applied again; content with deflate or several
            codings is sent without coding. `maxBody` limits the decoded content and the result. All regular expressions
            together may take at most 100 ms for one response, 20 ms if it is short. Over these limits, `onFailure` decides.
            Content of more than 32 KiB, or 1 KiB with a coding, is rewritten on other threads, so that other requests do
            not wait for it. While 256 contents wait there, further ones are sent unchanged, or answered with 500, as `onFailure`
            says.

            With `stream`, content of any size is rewritten while it passes, also where a text is split between two pieces. If a
            response fails after its head was sent, for example because its coding is broken, it is cut off. So is a response
            of which a piece of 4 KiB becomes more than 1 MiB, or that becomes more than 256 times as long when it is decoded.
            `text/event-stream` is rewritten only with `stream`, and if `types` lists it by name.

            If something was replaced, and always with `stream` and for HEAD and 304, a strong `ETag` becomes weak, and `Content-Length`,
            `Accept-Ranges` and digests of the original content are removed; the new length is stated if it is known. Partial content (206) and
            responses with `Cache-Control: no-transform` are never changed. A cache in the chain keeps the original content.
            """#,
        otherNames: ["replaceResponse", "replace", "subFilter", "sub_filter", "substitute", "bodyRewrite"])

    public init(options: inout OptionsReader) { rewriting = BodyRewriting(options: &options, ofRequests: false) }
}
