/// The swaps of a request, and their results. Used on the loop of its exchange only.
final class TokenSwaps {
    private(set) var swaps: [PlaceholderSwap] = []
    /// The placeholders that were replaced in this exchange.
    private(set) var used: Set<TokenPlaceholder> = []
    /// Whether the request went to an endpoint.
    var wasSent = false
    /// Whether the request crosses a network without TLS, so that nothing may be replaced any more.
    var isOpenToOthers = false
    /// The tokens that replaced a placeholder in any attempt, or may do so, for which responses are searched.
    private(set) var searched: [(placeholder: TokenPlaceholder, tokens: [TokenSearch])] = []
    /// The placeholders whose tokens were found in the response.
    var found: Set<TokenPlaceholder> = []
    /// The request as it goes upstream; `nil` if it is unchanged.
    var outgoing: OutgoingRequest?
    /// The filters for the two directions of the tunnel that the exchange becomes: from the client, and to it.
    var sentFilter: (any ContentFilter)?
    var receivedFilter: (any ContentFilter)?

    func add(_ swap: PlaceholderSwap) {
        remove(swap.placeholder)
        swaps.append(swap)
    }

    func remove(_ placeholder: TokenPlaceholder) { swaps.removeAll { $0.placeholder == placeholder } }

    /// A token replaces the placeholder.
    func use(_ placeholder: TokenPlaceholder) {
        used.insert(placeholder)
        expect(placeholder)
    }

    /// A token may replace the placeholder in content that still streams: the response is searched for it.
    func expect(_ placeholder: TokenPlaceholder) {
        guard let swap = swaps.first(where: { $0.placeholder == placeholder }), let search = swap.search else { return }
        if let index = searched.firstIndex(where: { $0.placeholder == placeholder }) {
            if !searched[index].tokens.contains(where: { $0 === search }) { searched[index].tokens.append(search) }
        } else {
            searched.append((placeholder, [search]))
        }
    }

    /// Called when the exchange ends, with a tunnel or without. The filters hold the swaps: if they stayed, the swaps and their tokens
    /// would never be freed.
    func endTunnel() { (sentFilter, receivedFilter) = (nil, nil) }

    /// Whether the response is searched for tokens.
    var scrubs: Bool { !searched.isEmpty }
}
