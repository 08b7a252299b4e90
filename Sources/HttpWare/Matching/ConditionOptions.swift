/// The options of an `if`, which decides whether an entry of a chain runs: a match, as in a route. On postwares it may also
/// test the response.
///
/// `Condition` in the room Chain evaluates it for an exchange.
public struct ConditionOptions: Sendable, Hashable {
    /// The conditions. On middlewares they test the request as it is at this place; on postwares, the request as received.
    public var request = RequestMatch()

    /// Statuses of responses, on postwares only; `nil` matches all.
    public var statuses: StatusSet? {
        get { request.response.statuses }
        set { request.response.statuses = newValue }
    }

    /// The makers of responses, on postwares only: `upstream`, `cache`, `gateway`, or the name of a ware.
    public var responders: [String] {
        get { request.response.responders }
        set { request.response.responders = newValue }
    }

    /// Fields of responses, on postwares only.
    public var responseHeaders: [NamedMatch] {
        get { request.response.headers }
        set { request.response.headers = newValue }
    }

    /// Makes a condition that is always met.
    public init() {}

    /// Reads the keys. On a middleware, the keys of the response are refused.
    public init(options: inout OptionsReader, isPostware: Bool) {
        request.read(&options, for: isPostware ? .postware : .middleware)
    }
}
