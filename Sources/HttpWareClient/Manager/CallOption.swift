public import HttpWare

/// A setting of one call that differs from its route or its service.
///
/// ```swift
/// let todo = try await manager.send(GetTodo(id: 7), .timeout(.seconds(5)), .tag("list"))
/// ```
public struct CallOption: Sendable {
    /// The encoder of the route's body. The body becomes content before the other options are applied.
    private(set) var encoder: (any ModelEncoder)?
    let apply: @Sendable (inout CallChoices) -> Void

    init(apply: @escaping @Sendable (inout CallChoices) -> Void) { self.apply = apply }

    /// The maximum duration of the whole exchange, including redirects and waits.
    public static func timeout(_ duration: Duration) -> CallOption {
        CallOption { $0.timeouts.total = duration }
    }

    /// The time limits, which replace the route's.
    public static func timeouts(_ timeouts: ExchangeTimeouts) -> CallOption { CallOption { $0.timeouts = timeouts } }

    /// A tag of the request, in addition to the route's.
    public static func tag(_ tag: RequestTag) -> CallOption { CallOption { $0.tags.insert(tag) } }

    /// A field, which replaces fields with that name; `nil` removes them.
    public static func field(_ name: String, _ value: String?) -> CallOption { CallOption { $0.headers[name] = value } }

    /// The encoder of the route's body, in place of the route's own. It has no effect on a `Request`, which already has
    /// its content.
    public static func encoder(_ encoder: any ModelEncoder) -> CallOption {
        var option = CallOption { _ in }
        option.encoder = encoder
        return option
    }

    /// The decoder of the response.
    public static func decoder(_ decoder: any ModelDecoder) -> CallOption { CallOption { $0.decoder = decoder } }

    /// The statuses that count as success.
    public static func success(_ statuses: StatusSet) -> CallOption { CallOption { $0.success = statuses } }
}

/// The properties that a call can change.
struct CallChoices: Sendable {
    var timeouts: ExchangeTimeouts
    var tags: Set<RequestTag>
    var headers: HeaderFields
    var decoder: (any ModelDecoder)?
    var success: StatusSet?
}

extension Request {
    /// The request with the options of a call applied, as a manager sends it.
    public func with(_ options: [CallOption]) -> Request {
        guard !options.isEmpty else { return self }
        var choices = CallChoices(
            timeouts: timeouts, tags: tags, headers: headers, decoder: decoder, success: success)
        for option in options { option.apply(&choices) }
        var request = self
        request.timeouts = choices.timeouts
        request.tags = choices.tags
        request.headers = choices.headers
        request.decoder = choices.decoder
        request.success = choices.success
        return request
    }
}
