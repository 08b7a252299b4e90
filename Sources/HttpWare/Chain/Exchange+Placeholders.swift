extension Exchange {
    /// Lets a token take its placeholder's place when the request goes upstream. A later swap of the same placeholder replaces the
    /// former. For middlewares, whose `contentNeed` is `beginning` if placeholders in content are replaced.
    public func swapPlaceholder(_ swap: PlaceholderSwap) {
        let swaps = tokenSwaps ?? TokenSwaps()
        tokenSwaps = swaps
        swaps.add(swap)
    }

    /// The placeholder is not replaced any more.
    public func forgetSwap(of placeholder: TokenPlaceholder) { tokenSwaps?.remove(placeholder) }

    /// Whether the request holds the placeholder, in its head or in content of which values are replaced; or may hold it, because its
    /// content still streams. For middlewares, while they are asked.
    public func holdsPlaceholder(
        _ placeholder: TokenPlaceholder, _ request: borrowing HttpRequest, in places: PlaceholderSwap.Places
    ) -> Bool {
        if RequestSearch.holds(request, placeholder) { return true }
        let place = ContentKind(request.fields[.contentType]).place
        guard !request.content.isEmpty, !place.isEmpty, places.contains(place) else { return false }
        let (bytes, isWhole) = request.content.bytes.map { ($0, true) } ?? beginningOfContent
        return !isWhole || SearchedContent.holds(placeholder, bytes, of: request)
    }

    /// Whether a token took the placeholder's place in the request that went upstream.
    public func hasSwapped(_ placeholder: TokenPlaceholder) -> Bool {
        guard let tokenSwaps else { return false }
        return tokenSwaps.wasSent && tokenSwaps.used.contains(placeholder)
    }

    /// Whether the response held a token that became the placeholder again.
    public func hasScrubbed(_ placeholder: TokenPlaceholder) -> Bool {
        tokenSwaps?.found.contains(placeholder) ?? false
    }
}

/// Is told of placeholders that were on their way to where they do not belong. Called on the loop of the exchange.
public protocol PlaceholderWatch: AnyObject, Sendable {
    /// The name of the credential that the placeholder stands for; `nil` for another run's.
    func credential(of placeholder: TokenPlaceholder) -> String?
    /// The request was refused.
    func refused(_ placeholder: TokenPlaceholder, _ reason: String, _ exchange: Exchange)
}
