public import HttpWare

/// Why a ware answered in place of the origin server, for a client in the same process: the failure that made it answer, or the limit that
/// it applies. The response says it for people only.
public enum AnswerCause: ExchangeKey {
    public typealias Value = GatewayError
}

/// Marks a request that a ware wanted to send again, and could not: its content was not kept, and the client cannot supply it again.
public enum NotRepeatable: ExchangeKey, Sendable {
    public typealias Value = NotRepeatable

    /// The response is the origin server's last word.
    case isFinal
    /// The response rejected a token, and there is a new token now: another request succeeds.
    case isRenewed
}
