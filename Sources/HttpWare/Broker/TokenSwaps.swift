/// What is to be swapped in a request, and what came of it. Used on the loop of its exchange only.
final class TokenSwaps {
    private(set) var swaps: [PlaceholderSwap] = []
    /// The placeholders that were replaced in this exchange.
    private(set) var used: Set<TokenPlaceholder> = []
    /// The request went to an endpoint.
    var wasSent = false
    /// The request crosses a network without TLS: nothing may be replaced any more.
    var isOpenToOthers = false
    /// The tokens that took a placeholder's place in one attempt or another, or may do so, where responses are searched for them.
    private(set) var searched: [(placeholder: TokenPlaceholder, tokens: [TokenSearch])] = []
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

    /// A token takes the placeholder's place.
    func use(_ placeholder: TokenPlaceholder) {
        used.insert(placeholder)
        expect(placeholder)
    }

    /// A token may take the placeholder's place, in content that still streams: the response is searched for it.
    func expect(_ placeholder: TokenPlaceholder) {
        guard let swap = swaps.first(where: { $0.placeholder == placeholder }), let search = swap.search else { return }
        if let index = searched.firstIndex(where: { $0.placeholder == placeholder }) {
            if !searched[index].tokens.contains(where: { $0 === search }) { searched[index].tokens.append(search) }
        } else {
            searched.append((placeholder, [search]))
        }
    }

    /// The response is searched for tokens.
    var scrubs: Bool { !searched.isEmpty }
}
