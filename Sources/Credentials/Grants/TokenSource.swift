public import HttpWare

/// A source of access tokens, for a program that obtains them in its own way: a login, another library, a test.
///
/// ```swift
/// struct Login: TokenSource {
///     func newToken(refreshing refreshToken: Secret?) async throws -> NewToken { … }
/// }
/// let login = Credential(name: "login", source: Login(), store: FileTokenStore(path: path))
/// ```
public protocol TokenSource: Sendable {
    /// A new token, in exchange for the last refresh token, if there is one.
    ///
    /// Called once at a time, on a loop: when requests need a token and there is none, and shortly before a token expires. If
    /// asking again would not help, it should throw `TokenRefused` or a `LastingFailure`, for example if the user has to log
    /// in. Any other error counts as temporary, and the source is asked again.
    func newToken(refreshing refreshToken: Secret?) async throws -> NewToken
}

/// A token from a source.
public struct NewToken: Sendable, Equatable {
    public var accessToken: Secret
    /// The lifetime from now on. If it is `nil`, the `exp` of a JWT applies, and otherwise the first refusal.
    public var lifetime: Duration?
    /// The refresh token for the next time; `nil` keeps the current one.
    public var refreshToken: Secret?
    /// The account that the token belongs to, such as the user's id at the server; `nil` keeps the credential's account. See
    /// `Credential.account`.
    public var account: String?

    public init(
        _ accessToken: Secret, lifetime: Duration? = nil, refreshToken: Secret? = nil, account: String? = nil
    ) {
        self.account = account
        self.accessToken = accessToken
        self.lifetime = lifetime
        self.refreshToken = refreshToken
    }
}

/// An error of a source that cannot supply a token. Asking again would not help.
public struct TokenRefused: Error, Sendable, CustomStringConvertible {
    /// The reason for people; contains no credentials.
    public let reason: String

    public init(_ reason: String) { self.reason = reason }
    public var description: String { reason }
}

/// An error that says whether trying again would help, such as a refusal by a server.
public protocol LastingFailure: Error {
    /// Whether the same attempt would fail again.
    var isLasting: Bool { get }
    /// The reason for people; contains no credentials.
    var reason: String { get }
}

/// The supplier of tokens: a token endpoint, or a program's own source.
protocol TokenAnswering: Sendable {
    /// Asks once for a token. Must be called on a loop.
    func ask(refreshToken: Secret?, now: LoopInstant) async throws(CredentialFailure) -> TokenResponse
}

/// Whether the current task is inside code that requests wait for: a source of tokens, or a ware that waits. Its own requests must not
/// wait for a connection that only those requests can free.
public enum AwaitedWork {
    @TaskLocal public static var isCurrent = false
}

/// The adapter for a program's own source.
struct AskedSource: TokenAnswering {
    let source: any TokenSource

    func ask(refreshToken: Secret?, now: LoopInstant) async throws(CredentialFailure) -> TokenResponse {
        do {
            return try TokenResponse(
                await AwaitedWork.$isCurrent.withValue(true) { try await source.newToken(refreshing: refreshToken) })
        } catch let error as CredentialFailure {
            throw error
        } catch let error as TokenRefused {
            throw CredentialFailure(.refused, error.reason, cause: error)
        } catch let error as any LastingFailure {
            throw CredentialFailure(
                error.isLasting ? .refused : .failed, "the source of tokens failed: \(error.reason)", cause: error)
        } catch {
            throw CredentialFailure(.failed, "the source of tokens failed: \(type(of: error))", cause: error)
        }
    }
}
