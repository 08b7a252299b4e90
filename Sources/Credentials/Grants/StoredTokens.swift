public import HttpWare

/// The tokens of one credential, as stored between runs and shared between gateways.
public struct StoredTokens: Sendable, Equatable {
    public var accessToken: Secret?
    /// When the access token expires, by the wall clock.
    public var expires: WallTime?
    public var refreshToken: Secret?
    /// The account that the tokens belong to: see `Credential.account`. `nil` if its name was never read.
    public var account: String?
    /// The mark of the configured refresh token that these tokens came from. If another one is configured, it is used
    /// instead.
    var origin: String?

    /// The file's content: JSON, so that people can read it and other programs can write it.
    public var json: [UInt8] {
        let object = Json.object(given: [
            ("version", 1), ("access_token", accessToken.map { .text($0.revealed) }),
            ("expires_at", expires.map { .digits(StoredTokens.digits($0)) }),
            ("refresh_token", refreshToken.map { .text($0.revealed) }), ("account", account.map { .text($0) }),
            ("origin", origin.map { .text($0) }),
        ])
        return Array((object.text + "\n").utf8)
    }

    /// Seconds since 1970 with three decimals, rounded down. A finer unit than seconds is needed, because a token's
    /// lifetime can be one second.
    private static func digits(_ time: WallTime) -> String {
        "\(time.seconds)." + String(Int(time.nanoseconds) / 1_000_000 + 1000).dropFirst()
    }

    public init(
        accessToken: Secret? = nil, expires: WallTime? = nil, refreshToken: Secret? = nil, account: String? = nil
    ) {
        self.init(
            accessToken: accessToken, expires: expires, refreshToken: refreshToken, account: account, origin: nil)
    }

    init(
        accessToken: Secret?, expires: WallTime? = nil, refreshToken: Secret?, account: String? = nil, origin: String?
    ) {
        self.account = account
        self.accessToken = accessToken
        self.expires = expires
        self.refreshToken = refreshToken
        self.origin = origin
    }

    /// Reads a file's content; `nil` if it is invalid. Tokens that are invalid in a field are ignored.
    public init?(json: [UInt8]) {
        do {
            let members = try JsonValue(json)
            guard members.members != nil else { return nil }
            // The names of RFC 6749 §5.1.
            accessToken = try members.text(of: "access_token").flatMap(StoredTokens.token)
            refreshToken = try members.text(of: "refresh_token").flatMap(StoredTokens.token)
            account = try members.text(of: "account")
            origin = try members.text(of: "origin")
            if let seconds = try members.number(of: "expires_at"), (0...1e15).contains(seconds) {
                let whole = seconds.rounded(.down)
                expires = WallTime(seconds: Int64(whole), nanoseconds: Int32((seconds - whole) * 1e9))
            }
        } catch {
            return nil
        }
    }

    private static func token(_ text: String) -> Secret? { TokenResponse.isToken(text) ? Secret(text) : nil }

    /// The mark of a configured refresh token: a hash (FNV-1a, 64 bits), which does not reveal the token.
    static func mark(_ secret: Secret) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in secret.revealed.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return String(hash, radix: 16)
    }
}
