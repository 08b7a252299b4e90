/// The options of an `if`, which decides whether an entry of a chain runs. All keys must match, and one member of each list.
///
/// `Condition` in room Chain decides it for an exchange.
public struct ConditionOptions: Sendable, Hashable {
    /// Conditions on the request as it is at this place; on postwares, on the request as received.
    public var request = RequestMatch()
    /// Statuses of responses, on postwares only; `nil` matches all.
    public var statuses: StatusSet?
    /// The makers of responses, on postwares only: `upstream`, `cache`, `gateway`, or the name of a ware.
    public var responders: [String] = []
    /// Fields of responses, on postwares only.
    public var responseHeaders: [NamedMatch] = []

    /// The keys with conditions on the response.
    public static let responseKeys = ["status", "responder", "responseHeaders"]

    /// A condition that is always met.
    public init() {}

    /// Reads the keys. On a middleware, those of the response are refused.
    public init(options: inout OptionsReader, isPostware: Bool) {
        request.read(&options)
        options.read("status", into: &statuses, doc: "statuses of the responses that match; only in postwares")
        options.read(
            "responder", into: &responders,
            doc: "makers of the responses that match: upstream, cache, gateway or a ware; only in postwares")
        responseHeaders = NamedMatch.readFields(
            "responseHeaders", &options,
            doc: "header fields that a response must have, each with one of the values; only in postwares")
        guard !isPostware else { return }
        for key in Self.responseKeys where options.isGiven(key) {
            options.fail(at: key, "a middleware runs before there is a response; use it in postwares")
        }
    }
}
