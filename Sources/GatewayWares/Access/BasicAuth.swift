public import Authentication
public import HttpWare

/// Requires a user name and password that match an htpasswd file; answers 401 otherwise. RFC 7617.
public struct BasicAuth: Middleware {
    /// The name of the protected area, which browsers show when they ask for the password.
    public var realm: String
    /// Whether `Authorization` is removed from the request.
    public var removeHeader = true
    private let memory: Memory

    public var holdsState: Bool { true }

    /// The default name of the protected area.
    public static let usualRealm = "httpware"

    public init(_ users: PasswordFile, realm: String = usualRealm, queue: OffloadQueue = .shared) {
        self.realm = realm
        memory = Memory(users, queue)
    }

    /// The state of the instance, shared by loops. Each part guards itself.
    private final class Memory: Sendable {
        /// How long accepted credentials are remembered, in nanoseconds.
        static let brief: Int64 = 60_000_000_000

        let users: PasswordFile
        let salt = DigestSalt()
        let verified = RecentlyVerified<Principal>(most: 10_000, mostBytes: .mebibytes(4))
        let checks = SingleFlight<Digest256, Check>()
        let queue: OffloadQueue

        init(_ users: PasswordFile, _ queue: OffloadQueue) {
            self.users = users
            self.queue = queue
        }
    }

    /// The result of a check.
    private enum Check: Sendable { case right, wrong, tooMuchWaits }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let now = exchange.now.nanoseconds
        let verdict =
            exchange.isForward
            ? request.withOnlyProxyAuthorization { decide($0, exchange, now) }
            : request.fields.withOnlyValue(of: .authorization) { decide($0, exchange, now) }
        switch verdict {
        case .absent: return refuse(exchange, "credentials are missing")
        case .several: return refuse(exchange, "the request carries more than one set of credentials")
        case .one(let verdict):
            if removeHeader, !exchange.isForward { request.fields.removeAccepted(.authorization) }
            return verdict
        }
    }

    private func decide(_ value: UnsafeRawBufferPointer, _ exchange: Exchange, _ now: Int64) -> Verdict {
        guard let encoded = AuthorizationValue.credentials(of: value, scheme: "basic") else {
            return refuse(exchange, "credentials are missing")
        }
        let key = Digest256(of: encoded, salt: memory.salt)
        if let principal = memory.verified.value(key, at: now) {
            exchange.authenticated(as: principal)
            return .pass
        }
        guard let credentials = BasicCredentials(encoded) else {
            return refuse(exchange, "the credentials are not a user name and a password")
        }
        return .wait { _, exchange in try await check(credentials, key, exchange) }
    }

    private func check(
        _ credentials: BasicCredentials, _ key: Digest256, _ exchange: Exchange
    ) async throws -> Verdict {
        let memory = self.memory
        let check = try await memory.checks.value(for: key) { finish in
            let isTaken = memory.queue.submit({ memory.users.accepts(credentials.user, credentials.password) }) {
                finish($0 ? .right : .wrong)
            }
            if !isTaken { finish(.tooMuchWaits) }
        }
        switch check {
        case .right:
            let principal = Principal(method: "basicAuth", name: credentials.user)
            let until = exchange.now.nanoseconds &+ Memory.brief
            memory.verified.remember(principal, for: key, until: until, bytes: 128 + credentials.user.utf8.count)
            exchange.authenticated(as: principal)
            return .pass
        case .wrong: return refuse(exchange, "the user name or the password is wrong")
        case .tooMuchWaits: return AuthenticationChallenge.tryLater("too many passwords are being checked", after: 1)
        }
    }

    private func refuse(_ exchange: Exchange, _ detail: String) -> Verdict {
        // Tells the client how to encode user name and password. RFC 7617 §2.1.
        AuthenticationChallenge.refuse(
            exchange, "Basic realm=\(AuthenticationChallenge.quoted(realm)), charset=\"UTF-8\"", detail)
    }
}

extension BasicAuth: AuthenticatingWare {
    public var givesClaims: Bool { false }
    public var takesPasswords: Bool { true }
}

extension BasicAuth: AccessGuard {
    public var admitsOnlyKnown: Bool { true }
}

extension BasicAuth: ConfigurableWare {
    public static let name: WareName = "basicAuth"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Requires a user name and password that match an htpasswd file; answers 401 otherwise.",
        source: "RFC 7617",
        example: #"""
            - basicAuth: { usersFile: conf/wares/users.htpasswd, realm: "staff only" }
            """#,
        details: #"""
            The file is made by `htpasswd -B`. Only bcrypt hashes are accepted, with a cost of 4 to 15. The file is read
            when the configuration is loaded. Checking a hash is slow by design. It is therefore done on other threads,
            and accepted credentials are remembered for a minute. While 64 checks wait, further requests with new
            credentials are answered with 503 and `Retry-After`. An unknown user takes as long to check as a known one.

            On a forward listener the credentials are in `Proxy-Authorization`, and the refusal is 407.
            """#,
        otherNames: ["auth", "authentication", "basic", "htpasswd", "userAuth"])

    public init(options: inout OptionsReader) {
        var realm = BasicAuth.usualRealm
        let users = options.readCredentials(
            "usersFile", doc: "htpasswd file with bcrypt hashes, one line user:hash for each user; # begins a comment",
            PasswordFile.init(_:mistakes:))
        options.read(
            "realm", into: &realm, doc: "name of the protected area, which browsers show when they ask for the password"
        )
        if !AuthenticationChallenge.isRealm(realm) {
            options.fail(at: "realm", "is empty, longer than 255 bytes, or holds a control character")
        }
        self.init(users ?? PasswordFile(), realm: realm)
        options.read(
            "removeHeader", into: &removeHeader, doc: "removes Authorization from the request before it goes upstream")
    }
}
