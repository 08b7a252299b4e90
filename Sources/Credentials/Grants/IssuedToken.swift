public import HttpWare

/// An access token as it was issued. Nothing prints it.
public final class IssuedToken: Sendable {
    /// Counts the tokens of one credential, from 1: a larger number is a newer token.
    public let number: Int
    /// The token itself; for the place that sends it.
    public let value: Secret
    /// When it expires, by the wall clock; `nil` where nobody knows.
    public let expires: WallTime?
    /// From when on it is renewed while requests go on with it; `nil` where it never is.
    public let renewal: WallTime?

    init(number: Int, value: Secret, expires: WallTime?, renewal: WallTime?) {
        self.number = number
        self.value = value
        self.expires = expires
        self.renewal = renewal
    }

    /// Whether it is known to have expired.
    public func isExpired(at now: WallTime) -> Bool { expires.map { $0 <= now } ?? false }

    /// Whether it is time to renew it.
    func isDue(at now: WallTime) -> Bool { renewal.map { $0 <= now } ?? false }
}
