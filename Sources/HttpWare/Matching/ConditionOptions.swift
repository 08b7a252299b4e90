/// The options of an `if`, which decides whether an entry of a chain runs: a match, as a route has one. On postwares it may ask for
/// parts of the response, too.
///
/// `Condition` in room Chain decides it for an exchange.
public struct ConditionOptions: Sendable, Hashable {
    /// The conditions. On middlewares they judge the request as it is at this place; on postwares, the request as received.
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

    /// A condition that is always met.
    public init() {}

    /// Reads the keys. On a middleware, those of the response are refused.
    public init(options: inout OptionsReader, isPostware: Bool) {
        request.read(&options, for: isPostware ? .postware : .middleware)
    }
}
