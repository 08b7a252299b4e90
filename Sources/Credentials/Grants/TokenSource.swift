public import HttpWare

/// Where access tokens come from, for a program that has its own way to them: a login of its own, another library, a test.
///
/// ```swift
/// struct Login: TokenSource {
///     func newToken(refreshing refreshToken: Secret?) async throws -> NewToken { … }
/// }
/// let login = Credential(name: "login", source: Login(), store: FileTokenStore(path: path))
/// ```
public protocol TokenSource: Sendable {
    /// A new token, in exchange for the last refresh token, where there was one.
    ///
    /// Called once at a time, on a loop, when requests need a token and there is none, and shortly before one expires. Throws
    /// `TokenRefused` when asking again changes nothing, such as when the user has to log in, or a `LastingFailure`; anything
    /// else may pass, and is tried again.
    func newToken(refreshing refreshToken: Secret?) async throws -> NewToken
}

/// A token as a source brings it.
public struct NewToken: Sendable, Equatable {
    public var accessToken: Secret
    /// From now on; `nil` where nobody knows: then a JWT's own `exp` counts, and otherwise the first refusal.
    public var lifetime: Duration?
    /// For the next time; `nil` keeps the one at hand.
    public var refreshToken: Secret?
    /// Whose token it is, such as the user's id at the server; `nil` where the credential's own account goes on. See
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

/// There is no token, and asking again changes nothing.
public struct TokenRefused: Error, Sendable, CustomStringConvertible {
    /// For people; holds no credentials.
    public let reason: String

    public init(_ reason: String) { self.reason = reason }
    public var description: String { reason }
}

/// An error that knows whether trying again changes something: a refusal by a server, say.
public protocol LastingFailure: Error {
    /// Whether the same would fail again.
    var isLasting: Bool { get }
    /// For people; holds no credentials.
    var reason: String { get }
}

/// Who is asked for a token: a token endpoint, or a program's own source.
protocol TokenAnswering: Sendable {
    /// Asks once. On a loop.
    func ask(refreshToken: Secret?, now: LoopInstant) async throws(CredentialFailure) -> TokenResponse
}

/// A program's own source.
struct AskedSource: TokenAnswering {
    let source: any TokenSource

    func ask(refreshToken: Secret?, now: LoopInstant) async throws(CredentialFailure) -> TokenResponse {
        do {
            return try TokenResponse(await source.newToken(refreshing: refreshToken))
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
