public import HttpWare

/// Replaces texts in the content of requests.
///
/// Content of other types and partial content are never changed.
public struct RewriteRequestBody: Middleware, ContentEditor {
    private let rewriting: BodyRewriting

    /// Rewrites complete content of at most `maxBody`. With `streams`, content of any size is rewritten while it passes, without
    /// the rules that have patterns.
    public init(
        rules: [RewriteRule], types: [MediaPattern] = RewriteBody.usualTypes, maxBody: ByteCount = .mebibytes(1),
        streams: Bool = false, onFailure: EditingFailure = .pass
    ) {
        rewriting = BodyRewriting(
            rules: rules, types: types, maxBody: maxBody, streams: streams, onFailure: onFailure)
    }

    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        !rewriting.streams && rewriting.editing.concerns(request) ? rewriting.editing.maxBody : nil
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        guard rewriting.editing.concerns(request) else { return .pass }
        if rewriting.streams {
            let codings = request.fields.listMembers(of: .contentEncoding)
            guard let filter = RewrittenContent(rewriting.rules, codings: codings, rewriting.editing) else {
                try rewriting.editing.failed(EditingFault.unknownCoding, ofRequestIn: exchange)
                return .pass
            }
            ContentEditing.describe(&request.fields, coding: filter.coding)
            exchange.requestContentChanges()
            exchange.filterRequestContent(with: filter)
            return .pass
        }
        return try rewriting.editing.edit(&request, in: exchange, by: rewriting.rewrite)
    }
}

extension RewriteRequestBody: ConfigurableWare {
    public static let name: WareName = "rewriteRequestBody"
    public static let about = WareAbout(
        "Replaces texts in the content of requests.",
        source: "Caddy replace-response; RFC 9110 §8.4, RFC 9530",
        example: #"""
            - rewriteRequestBody: { rules: [{ find: "https://www.example.com", replace: "http://internal.example" }] }
            """#,
        details: #"""
            The rules and the other options work as in `rewriteBody`, for the content of requests. The request waits until its
            content is whole, unless `stream` is set. Digests of the original content are removed if something was replaced, and always
            with `stream`. Requests with `Content-Range` are never changed.

            List the ware after wares that verify the content, and before wares that sign it or send it again.
            """#,
        otherNames: ["replaceRequest", "requestBody"])

    public init(options: inout OptionsReader) { rewriting = BodyRewriting(options: &options, ofRequests: true) }
}
