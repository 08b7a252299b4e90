extension Exchange {
    /// Replaces a placeholder by its token when the request goes upstream. A later swap of the same placeholder overrides the earlier
    /// one. For middlewares; their `contentNeed` must be `beginning` if placeholders in content are replaced.
    public func swapPlaceholder(_ swap: PlaceholderSwap) {
        let swaps = tokenSwaps ?? TokenSwaps()
        tokenSwaps = swaps
        swaps.add(swap)
    }

    /// Cancels the swap of the placeholder: the request does not hold it at a place where it is replaced. If it holds it elsewhere,
    /// the refusal says so.
    public func forgetSwap(of placeholder: TokenPlaceholder) {
        tokenSwaps?.remove(placeholder)
        var known = placeholdersElsewhere
        guard !known.contains(placeholder) else { return }
        known.append(placeholder)
        self[PlaceholdersElsewhere.self] = known
    }

    /// Placeholders that may be replaced in requests to this destination, although not where this request holds them, if it does.
    var placeholdersElsewhere: [TokenPlaceholder] { self[PlaceholdersElsewhere.self] ?? [] }

    private enum PlaceholdersElsewhere: ExchangeKey { typealias Value = [TokenPlaceholder] }

    /// The result of the search of complete content, for all credentials.
    private enum PlaceholdersInContent: ExchangeKey { typealias Value = ContentPlaceholders }

    /// Whether the request holds the placeholder, in its head or in content that is searched. Also true if content could hold it that
    /// is still streaming, or is too long to be searched at once. For middlewares, while they run.
    public func holdsPlaceholder(
        _ placeholder: TokenPlaceholder, _ request: borrowing HttpRequest, in places: PlaceholderSwap.Places
    ) -> Bool {
        if RequestSearch.holds(request, placeholder) { return true }
        let place = ContentKind(request.fields[.contentType]).place
        guard !request.content.isEmpty, !place.isEmpty, places.contains(place) else { return false }
        let (bytes, isWhole) = request.content.bytes.map { ($0, true) } ?? beginningOfContent
        if !isWhole { return true }
        let codings = request.fields.values(of: .contentEncoding)
        if let known = self[PlaceholdersInContent.self], known.isOf(bytes, codings) {
            return known.mayHold(placeholder)
        }
        let found = ContentPlaceholders(in: bytes, codings)
        self[PlaceholdersInContent.self] = found
        return found.mayHold(placeholder)
    }

    /// Whether the request that went upstream carried the token in place of the placeholder.
    public func hasSwapped(_ placeholder: TokenPlaceholder) -> Bool {
        guard let tokenSwaps else { return false }
        return tokenSwaps.wasSent && tokenSwaps.used.contains(placeholder)
    }

    /// Whether the response held a token that was replaced by its placeholder.
    public func hasScrubbed(_ placeholder: TokenPlaceholder) -> Bool {
        tokenSwaps?.found.contains(placeholder) ?? false
    }
}

/// Receives reports of placeholders that were about to reach the wrong place. Called on the loop of the exchange.
public protocol PlaceholderWatch: AnyObject, Sendable {
    /// The name of the placeholder's credential; `nil` for a placeholder of another run.
    func credential(of placeholder: TokenPlaceholder) -> String?
    /// The request was refused.
    func refused(_ placeholder: TokenPlaceholder, _ reason: String, _ exchange: Exchange)
}
