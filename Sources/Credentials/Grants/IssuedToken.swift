public import HttpWare

/// An access token as it was issued. It is never printed.
public final class IssuedToken: Sendable {
    /// The number of the token among those of its credential, from 1; a larger number is a newer token.
    public let number: Int
    /// The token itself; only for the code that sends it.
    public let value: Secret
    /// When the token expires, by the wall clock; `nil` if that is unknown.
    public let expires: WallTime?
    /// The time from which the token is renewed while requests continue with it; `nil` if it is never renewed.
    public let renewal: WallTime?

    init(number: Int, value: Secret, expires: WallTime?, renewal: WallTime?) {
        self.number = number
        self.value = value
        self.expires = expires
        self.renewal = renewal
    }

    /// Whether the token is known to have expired.
    public func isExpired(at now: WallTime) -> Bool { expires.map { $0 <= now } ?? false }

    /// Whether the token is due for renewal.
    func isDue(at now: WallTime) -> Bool { renewal.map { $0 <= now } ?? false }
}
