import HttpWareClient

/// Obtains tokens from the todo server: the first one for the user's name, later ones for the refresh token.
struct Login: TokenSource {
    let manager: HttpManager
    let name: String

    func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
        let token = try await manager.send(GetToken(body: .init(name: name, refreshToken: refreshToken?.revealed)))
        return NewToken(
            Secret(token.accessToken), lifetime: .seconds(token.expiresIn), refreshToken: Secret(token.refreshToken))
    }
}
