extension Exchange {
    /// Replaces a placeholder by its token when the request goes upstream. A later swap of the same placeholder overrides the earlier
    /// one. For middlewares; their `contentNeed` must be `beginning` if placeholders in content are replaced.
    public func swapPlaceholder(_ swap: PlaceholderSwap) {
        let swaps = tokenSwaps ?? TokenSwaps()
        tokenSwaps = swaps
        swaps.add(swap)
    }

    /// Cancels the swap of the placeholder.
    public func forgetSwap(of placeholder: TokenPlaceholder) { tokenSwaps?.remove(placeholder) }

    /// Whether the request holds the placeholder, in its head or in content that is searched. Also true if content that is still
    /// streaming could hold it. For middlewares, while they run.
    public func holdsPlaceholder(
        _ placeholder: TokenPlaceholder, _ request: borrowing HttpRequest, in places: PlaceholderSwap.Places
    ) -> Bool {
        if RequestSearch.holds(request, placeholder) { return true }
        let place = ContentKind(request.fields[.contentType]).place
        guard !request.content.isEmpty, !place.isEmpty, places.contains(place) else { return false }
        let (bytes, isWhole) = request.content.bytes.map { ($0, true) } ?? beginningOfContent
        return !isWhole || SearchedContent.holds(placeholder, bytes, of: request)
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
