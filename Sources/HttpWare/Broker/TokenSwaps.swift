/// What is to be swapped in a request, and what came of it. Used on the loop of its exchange only.
final class TokenSwaps {
    private(set) var swaps: [PlaceholderSwap] = []
    /// The placeholders that were replaced in this exchange, and those that may be in content that still streams.
    private(set) var used: Set<TokenPlaceholder> = []
    /// The tokens that took a placeholder's place in one attempt or another, where responses are searched for them.
    private(set) var searched: [(placeholder: TokenPlaceholder, tokens: [Secret])] = []
    /// The placeholders whose tokens were found in the response.
    var found: Set<TokenPlaceholder> = []
    /// The request as it goes upstream; `nil` where it goes as it is.
    var outgoing: OutgoingRequest?
    /// What the client sends into the tunnel that the exchange becomes, and what it gets from there.
    var sentFilter: (any ContentFilter)?
    var receivedFilter: (any ContentFilter)?

    func add(_ swap: PlaceholderSwap) {
        remove(swap.placeholder)
        swaps.append(swap)
    }

    func remove(_ placeholder: TokenPlaceholder) { swaps.removeAll { $0.placeholder == placeholder } }

    /// A token takes the placeholder's place, or may do so.
    func use(_ placeholder: TokenPlaceholder) {
        used.insert(placeholder)
        guard let swap = swaps.first(where: { $0.placeholder == placeholder }), swap.scrubs else { return }
        if let index = searched.firstIndex(where: { $0.placeholder == placeholder }) {
            if !searched[index].tokens.contains(swap.secret) { searched[index].tokens.append(swap.secret) }
        } else {
            searched.append((placeholder, [swap.secret]))
        }
    }

    /// The response is searched for tokens.
    var scrubs: Bool { !searched.isEmpty }
}
