import HttpWare

/// Why a command has no answer.
public struct RedisFailure: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// It was not sent: the server is away, failed just now, or too much waits for it.
        case unavailable
        /// It was sent, and no answer came in time, or the connection ended before: it may have been done.
        case noAnswer
        /// The server refused it.
        case refused
        /// The server refused it, for it does not know the script that was named; it did nothing.
        case unknownScript
    }

    public let kind: Kind
    /// For people: starts in lower case, ends without a full stop, holds no credentials.
    public let reason: String

    public var description: String { reason }

    /// Where a node of a cluster sends the command; `nil` for any other failure.
    let redirect: RedisRedirect?

    init(_ kind: Kind, _ reason: String, redirect: RedisRedirect? = nil) {
        self.kind = kind
        self.reason = reason
        self.redirect = redirect
    }

    /// The task that waited was cancelled.
    static let givenUp = RedisFailure(.noAnswer, "the wait for the server was given up")

    /// The server's own words, of which not more is kept than a line has room for.
    init(refusal text: String) {
        self.init(
            text.hasPrefix("NOSCRIPT") ? .unknownScript : .refused,
            "the server refuses: \(String(text.prefix(120)).quotedForErrors)", redirect: RedisRedirect(text))
    }
}
