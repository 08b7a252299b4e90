/// Replaces a placeholder by its token in a request that goes upstream.
///
/// The request that wares, logs and records see keeps the placeholder.
public struct PlaceholderSwap: Sendable {
    /// The places where placeholders are replaced.
    public struct Places: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// In values of fields, also inside Basic credentials.
        public static let headers = Places(rawValue: 1)
        /// In values of the query.
        public static let query = Places(rawValue: 2)
        /// In values of `application/x-www-form-urlencoded` content.
        public static let form = Places(rawValue: 4)
        /// In strings of JSON content that are not names.
        public static let json = Places(rawValue: 8)
        /// In the path, where the token is percent-encoded as a part of a segment.
        public static let path = Places(rawValue: 16)
        /// The places inside content.
        static let content: Places = [.form, .json]
    }

    public let placeholder: TokenPlaceholder
    public let places: Places
    /// Replaces the token by the placeholder again in the origin server's response; `nil` without such a search.
    let search: TokenSearch?
    let token: [UInt8]
    /// The token encoded for a value of a query or a form. RFC 3986 §2.1.
    let inForm: [UInt8]
    /// The token encoded for a JSON string. RFC 8259 §7.
    let inJson: [UInt8]

    /// Makes a swap for these places. With `search`, the token becomes the placeholder again in the response.
    public init(_ placeholder: TokenPlaceholder, by token: Secret, in places: Places, search: TokenSearch? = nil) {
        self.placeholder = placeholder
        self.search = search
        self.places = places
        let token = Array(token.revealed.utf8)
        self.token = token
        inForm = PercentText.encoded(token)
        inJson = Array(JsonString.quoted(token).dropFirst().dropLast())
    }
}

/// A placeholder that was about to reach the wrong place.
struct PlaceholderFault: Error, Sendable {
    let placeholder: TokenPlaceholder
    /// The place where it was found: `the query`.
    let place: String
    /// Whether it is replaced elsewhere in requests to this host.
    let isKnown: Bool

    init(_ placeholder: TokenPlaceholder, in place: String, _ swaps: [PlaceholderSwap]) {
        self.placeholder = placeholder
        self.place = place
        isKnown = swaps.contains { $0.placeholder == placeholder }
    }
}
