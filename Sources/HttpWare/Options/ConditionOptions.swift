/// An `if`, as it was written: when an entry of a chain runs. Keys are ANDed, members of a list ORed.
///
/// It is decided against an exchange elsewhere (room Chain).
public struct ConditionOptions: Sendable, Hashable {
    /// The request as it is there; on postwares, the request as received.
    public var request = RequestMatch()
    /// On postwares only; `nil` asks nothing.
    public var statuses: StatusSet?
    /// On postwares only: who made the response – `upstream`, `cache`, `gateway`, or a ware's name.
    public var responders: [String] = []
    /// On postwares only.
    public var responseHeaders: [NamedMatch] = []

    /// The keys that ask something of the response.
    public static let responseKeys = ["status", "responder", "responseHeaders"]

    /// A condition that asks nothing.
    public init() {}

    /// Reads the keys; on a request-side entry those of the response are refused.
    public init(options: inout OptionsReader, isPostware: Bool) {
        request.read(&options)
        options.read("status", into: &statuses)
        options.read("responder", into: &responders)
        responseHeaders = NamedMatch.readFields("responseHeaders", &options)
        guard !isPostware else { return }
        for key in Self.responseKeys where options.isGiven(key) {
            options.fail(at: key, "a middleware runs before there is a response; use it in postwares")
        }
    }
}
