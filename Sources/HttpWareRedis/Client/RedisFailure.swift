import HttpWare

/// Why a command has no answer.
public struct RedisFailure: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// The command was not sent: the server is unreachable or failed a moment ago, or too many commands wait for
        /// it.
        case unavailable
        /// The command was sent, but no answer came in time, or the connection ended. It may have been executed.
        case noAnswer
        /// The server refused it.
        case refused
        /// The server refused the command, because it does not know the named script. Nothing was executed.
        case unknownScript
    }

    public let kind: Kind
    /// The reason for people: starts in lower case, ends without a full stop, contains no credentials.
    public let reason: String

    public var description: String { reason }

    /// The node to which a node of a cluster redirects the command; `nil` for any other failure.
    let redirect: RedisRedirect?

    init(_ kind: Kind, _ reason: String, redirect: RedisRedirect? = nil) {
        self.kind = kind
        self.reason = reason
        self.redirect = redirect
    }

    /// The failure if the waiting task was cancelled.
    static let givenUp = RedisFailure(.noAnswer, "the wait for the server was given up")

    /// A refusal with the server's text, shortened to fit in a line.
    init(refusal text: String) {
        self.init(
            text.hasPrefix("NOSCRIPT") ? .unknownScript : .refused,
            "the server refuses: \(String(text.prefix(120)).quotedForErrors)", redirect: RedisRedirect(text))
    }
}
