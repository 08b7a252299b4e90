/// Searches a request for placeholders of tokens, before it goes upstream, and decides about it. Asked once per attempt of the chain, on
/// the loop of its exchange.
struct RequestGuard {
    /// The decision about a request that holds no placeholder in a wrong place.
    enum Decision {
        /// The request goes upstream. Its content streams through the search, if it has content.
        case passes(SearchedContent?)
        /// The whole content is there: it passes the search before any part of the request is sent. `settle` takes the result.
        case searches(SearchedContent)
    }

    /// The maximum content that is held after placeholders in it were replaced, and with its coding removed.
    static let mostReplaced = 16 << 20

    let swaps: TokenSwaps

    /// Begins again for a further attempt: earlier attempts may have replaced other placeholders.
    init(_ swaps: TokenSwaps?) {
        self.swaps = swaps ?? TokenSwaps()
        self.swaps.outgoing = nil
    }

    /// Searches the request's head and trailers, and says how its content is to be searched. If tokens replace placeholders, the request
    /// that is sent instead is in `swaps`. `isWhole` says whether all of the content is there and no ware filters it.
    func judge(_ request: inout HttpRequest, trailers: HttpFields?, isWhole: Bool) throws -> Decision {
        // The gateway must be able to read any protocol that the two sides could agree on.
        if let upgrade = request.upgrade, upgrade.lowercased() != "websocket" { request.upgrade = nil }
        request.fields.remove("Sec-WebSocket-Extensions" as FieldName)
        if RequestSearch.isNeeded(request) {
            var search = RequestSearch(swaps.swaps)
            let outgoing = OutgoingRequest(request)
            try search.replace(in: &outgoing.request)
            if !search.used.isEmpty {
                swaps.outgoing = outgoing
                for placeholder in search.used { swaps.use(placeholder) }
            }
        }
        if let trailers { try RequestSearch(swaps.swaps).searchTrailers(trailers) }
        if request.upgrade != nil {
            swaps.sentFilter = WebSocketFilter(isMasked: true) { [swaps] in
                SearchedContent(swaps, words: "a WebSocket message")
            }
        }
        guard !request.content.isEmpty else { return .passes(nil) }
        guard let search = SearchedContent(request, swaps) else {
            throw GatewayError(
                .downstream, .contentCodingUnsupported,
                "the content has a coding that cannot be searched for placeholders of tokens; send it as it is, or with "
                    + ContentDecoder.names.joined(separator: ", "))
        }
        if isWhole {
            search.isHeld = true
            return .searches(search)
        }
        if search.decodes { change(request) { $0.fields.remove(.contentEncoding as FieldName) } }
        if !search.keepsLength {
            // A placeholder may still come: then the origin server's response may hold its token.
            for swap in swaps.swaps where !swap.places.isDisjoint(with: .content) { swaps.expect(swap.placeholder) }
        }
        return .passes(search)
    }

    /// Takes the whole content as it left the search: if it differs, it is sent in place of the request's own.
    func settle(_ searched: [UInt8], from search: SearchedContent, of request: borrowing HttpRequest) {
        change(request) { outgoing in
            outgoing.content = .bytes(searched)
            if search.decodes { outgoing.fields.remove(.contentEncoding as FieldName) }
            for name in HttpFields.digests { outgoing.fields.remove(name) }
        }
    }

    private func change(_ request: borrowing HttpRequest, _ body: (inout HttpRequest) -> Void) {
        let outgoing = swaps.outgoing ?? OutgoingRequest(copy request)
        body(&outgoing.request)
        swaps.outgoing = outgoing
    }
}

extension PlaceholderFault {
    /// The reason for a refusal. `credential` is the name of the placeholder's credential, if it is in force here; `isElsewhere` says
    /// whether a ware replaces it in another place of requests to this host.
    func reason(of credential: String?, isElsewhere: Bool, host: String) -> String {
        guard let credential else { return "\(place) holds a placeholder that is not in force here" }
        return isKnown || isElsewhere
            ? "\(place) holds the placeholder of \(credential), which is not replaced there"
            : "\(place) holds the placeholder of \(credential), which is not for \(host)"
    }
}
