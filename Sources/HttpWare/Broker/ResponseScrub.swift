/// Replaces tokens by placeholders in an origin server's response.
enum ResponseScrub {
    /// Edits the head. `filter` gets the filters for the content; those for messages of a WebSocket are stored in the swaps.
    /// Throws if the content cannot be searched. `method` is that of the request.
    static func apply(
        to response: inout HttpResponse, _ swaps: TokenSwaps, method: HttpMethod,
        filter: (any ContentFilter) -> Void
    ) throws(GatewayError) {
        if response.status == .partialContent {
            throw .badResponse("a part of the content cannot be searched for the token that the request carried")
        }
        // The origin server's reason phrase could contain the token, so it is dropped.
        response.reason = nil
        var codings = response.fields.values(of: .contentEncoding)
        for (placeholder, tokens) in swaps.searched {
            if response.fields.scrub(tokens, placeholder: placeholder) { swaps.found.insert(placeholder) }
            guard
                let content = ScrubbedContent(
                    tokens, placeholder: placeholder, codings: codings, found: { swaps.found.insert(placeholder) })
            else {
                throw .badResponse(
                    "the response has a coding that cannot be searched for the token that the request carried")
            }
            codings = []
            if response.status == .switchingProtocols {
                swaps.receivedFilter = WebSocketFilter(isMasked: false) {
                    MessageScrub(swaps)
                }
            } else if !response.content.isEmpty {
                filter(content)
            }
        }
        describe(&response, isHead: method == .head)
    }

    /// Adapts the fields about the content to what the client gets, or removes them.
    ///
    /// A response to HEAD keeps its length if it has no coding: GET gets that many bytes, unless the content holds the token
    /// (RFC 9110 §8.6). Clients plan downloads by it. A response to GET streams while it is searched, so that its length is unknown.
    private static func describe(_ response: inout HttpResponse, isHead: Bool) {
        let codings = response.fields.values(of: .contentEncoding)
        let keepsLength = isHead && ContentDecoder(codings)?.isIdentity == true
        for name in untrue where !keepsLength || name != .contentLength { response.fields.remove(name) }
        // The content may differ from the original in some bytes: RFC 9110 §8.8.1.
        if let tag = response.fields[.etag], tag.hasPrefix("\"") {
            response.fields.setOwn(.etag, "W/\(tag)")
        }
    }

    /// Fields that describe other bytes: coding, length, ranges and digests.
    private static let untrue: [FieldName] =
        [.contentEncoding, .contentLength, .acceptRanges, "Content-MD5"] + HttpFields.digests

    /// Edits the trailers of the response.
    static func scrub(_ trailers: inout HttpFields, _ swaps: TokenSwaps) {
        for (placeholder, tokens) in swaps.searched where trailers.scrub(tokens, placeholder: placeholder) {
            swaps.found.insert(placeholder)
        }
    }
}

/// Searches a message of a WebSocket for all tokens.
private final class MessageScrub: ContentFilter {
    private var filters: [ScrubbedContent] = []

    init(_ swaps: TokenSwaps) {
        filters = swaps.searched.compactMap { placeholder, tokens in
            ScrubbedContent(tokens, placeholder: placeholder) { swaps.found.insert(placeholder) }
        }
    }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        try run(Array(input), from: 0, into: &output)
    }

    func finish(into output: inout [UInt8]) throws {
        for index in filters.indices {
            var rest: [UInt8] = []
            try filters[index].finish(into: &rest)
            try run(rest, from: index + 1, into: &output)
        }
    }

    private func run(_ bytes: [UInt8], from first: Int, into output: inout [UInt8]) throws {
        var bytes = bytes
        for filter in filters.dropFirst(first) {
            var further: [UInt8] = []
            try bytes.withUnsafeBytes { try filter.filter($0, into: &further) }
            bytes = further
        }
        output += bytes
    }
}
