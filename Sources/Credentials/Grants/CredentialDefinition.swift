public import HttpWare

/// How a token is obtained and kept valid: an entry under `credentials`.
public struct CredentialDefinition: Sendable, Hashable {
    /// How an access token is obtained. RFC 6749 §4.4, §6.
    public enum Grant: String, OptionWord {
        case clientCredentials, refreshToken
        /// The token is configured, and never changes.
        case `static`
    }

    /// How the gateway authenticates itself to the token endpoint. RFC 6749 §2.3.1.
    public enum ClientAuth: String, OptionWord {
        /// Basic credentials in `Authorization`.
        case basic
        /// Parameters in the content.
        case post
    }

    /// The scope in which only one refresh runs at a time.
    public enum Lock: Sendable, Hashable {
        case process
        /// All gateways of this machine that share `file`.
        case file
        /// All gateways that share the store of this name, which also keeps their tokens.
        case store(String, any CredentialServer)

        public static func == (left: Lock, right: Lock) -> Bool {
            switch (left, right) {
            case (.process, .process), (.file, .file): true
            case (.store(let name, let server), .store(let other, let otherServer)):
                name == other && server.isSame(as: otherServer)
            default: false
            }
        }

        public func hash(into hasher: inout Hasher) {
            switch self {
            case .process: hasher.combine(0)
            case .file: hasher.combine(1)
            case .store(let name, _): hasher.combine(name)
            }
        }
    }

    /// The maximum number of refreshes in a period.
    public struct Window: Sendable, Hashable {
        public var max: Int
        public var per: Duration

        public init(max: Int = 5, per: Duration = .seconds(30)) {
            self.max = max
            self.per = per
        }

        /// For people: `5 refreshes in 30s`.
        public var text: String { "\(max) refresh\(max == 1 ? "" : "es") in \(per.optionText)" }
    }

    /// Why tokens with this lifetime cannot be kept up: the last of the refreshes that the window allows brings a token that ends before the
    /// next refresh may begin. `nil` if they can.
    public func shortfall(ofTokensLiving lifetime: Duration) -> String? {
        // Each refresh begins at most half of the lifetime before its end.
        let cycle = lifetime - min(refreshBefore, lifetime / 2)
        guard lifetime > .zero, cycle > .zero, cycle * (window.max - 1) + lifetime < window.per else { return nil }
        let needed = Int(((window.per - lifetime) / cycle).rounded(.up)) + 1
        return
            "its tokens live \(lifetime.optionText), and window allows \(window.text): requests fail until more are allowed;"
            + " write window: { max: \(needed) } or more"
    }

    /// The name in metrics, traces, logs and errors.
    public var name: String
    public var grant: Grant
    public var tokenUrl: EndpointUrl?
    /// The authorization server, whose metadata names its token endpoint. RFC 8414.
    public var issuer: EndpointUrl?
    public var clientId: String?
    public var clientSecret: Secret?
    public var auth: ClientAuth = .basic
    public var scopes: [String] = []
    /// The first refresh token. A later one in the file, from a rotation, has precedence.
    public var refreshToken: Secret?
    /// The token, if it is static.
    public var value: Secret?
    /// The file in which tokens are kept between runs.
    public var file: FilePath?
    /// How long before its expiry a token is renewed; at most half of its lifetime.
    public var refreshBefore = Duration.seconds(60)
    /// The time limit of one call to the token endpoint.
    public var timeout = Duration.seconds(5)
    /// The maximum number of repetitions of a call that failed for a temporary reason.
    public var retry = 2
    public var lock = Lock.process
    public var window = Window()
    /// Whether new tokens are stored before requests use them. A client sets it: if it ended in between, it would lose its
    /// login, because the former refresh token is spent. A gateway releases its requests first, because many may wait and it
    /// rarely ends.
    public var keepsBeforeUse = false
    /// The environment variable in which a program gets a placeholder of the token.
    public var env: String?

    public init(name: String, grant: Grant) {
        self.name = name
        self.grant = grant
    }
}

extension CredentialDefinition {
    /// Reads an entry under `credentials`.
    public init(name: String, options: inout OptionsReader) {
        self.init(name: name, grant: .static)
        var grant: Grant?
        options.read(
            "grant", into: &grant, doc: "OAuth 2.0 grant by which tokens are obtained; static is a fixed token")
        options.require("grant")
        var tokenUrl: EndpointUrl?
        options.read("tokenUrl", into: &tokenUrl, doc: "URL of the authorization server's token endpoint")
        options.read(
            "issuer", into: &issuer, doc: "URL of the authorization server, whose metadata contains the token endpoint")
        self.tokenUrl = tokenUrl
        options.read("clientId", into: &clientId, doc: "client identifier of the gateway at the authorization server")
        options.readSecret(
            "clientSecret", into: &clientSecret, doc: "client secret of the gateway at the authorization server")
        options.read("auth", into: &auth, doc: "how clientId and clientSecret are sent (RFC 6749 §2.3.1)")
        options.read("scopes", into: &scopes, doc: "scopes to request; by default those of the authorization server")
        options.readSecret(
            "refreshToken", into: &refreshToken, doc: "the first refresh token; later ones are kept in file")
        options.readSecret("value", into: &value, doc: "the fixed token; only for grant static")
        options.read("file", into: &file, doc: "file that keeps the tokens across restarts; created with mode 0600")
        options.read(
            "refreshBefore", into: &refreshBefore, in: .zero ... .seconds(86_400),
            doc: "how long before its expiry a token is renewed; at most half of its lifetime")
        options.read(
            "timeout", into: &timeout, in: .milliseconds(10) ... .seconds(60),
            doc: "maximum duration of one call to the token endpoint")
        options.read(
            "retry", into: &retry, in: 0...10, doc: "maximum number of repeated calls after a temporary failure")
        let lockWord = readLock(&options)
        options.read("window", doc: "limit on the rate of refreshes") { options in
            options.read("max", into: &window.max, in: 1...100_000, doc: "maximum number of refreshes in the period")
            options.read(
                "per", into: &window.per, in: .seconds(1) ... .seconds(86_400),
                doc: "period in which refreshes are counted")
        }
        options.read(
            "env", into: &env,
            doc: "environment variable in which httpware with gives a program a placeholder of the token")
        if let env, !CredentialDefinition.isVariable(env) {
            options.fail(at: "env", "is not the name of a variable; write letters, digits and _, such as API_TOKEN")
        }
        options.useless(
            "tokenUrl", "issuer", "clientId", "clientSecret", "auth", "scopes", "refreshToken", "file", "refreshBefore",
            "timeout", "retry",
            "lock", "window", with: "grant", grant, is: .static)
        options.useless("refreshToken", with: "grant", grant, is: .clientCredentials)
        options.only("value", with: "grant", grant, is: .static)
        guard let grant else { return }
        self.grant = grant
        check(&options, lockWord: lockWord)
    }

    /// Whether the text is a valid name of an environment variable in POSIX.
    private static func isVariable(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return name.utf8.allSatisfy { byte in
            byte == 0x5f || (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
        }
    }

    /// Reads `lock`, and returns its text.
    private mutating func readLock(_ options: inout OptionsReader) -> String {
        var word = "process"
        options.read(
            "lock", into: &word,
            doc: "scope in which only one refresh runs at a time: process, file, or the name of a redis store")
        switch word {
        case "process": lock = .process
        case "file":
            lock = .file
            if file == nil { options.fail(at: "lock", "needs a file that the gateways share; write file") }
        default:
            guard let server = options.findServer(word, for: "lock", as: (any CredentialServer).self) else { break }
            lock = .store(word, server)
            if file != nil {
                options.fail(
                    at: "file", "cannot be combined with a store as lock, which keeps the tokens; write only one")
            }
        }
        return word
    }

    private func check(_ options: inout OptionsReader, lockWord: String) {
        switch grant {
        case .static: options.require("value")
        case .clientCredentials:
            options.requireOne(of: "tokenUrl", "issuer")
            options.require("clientId", "clientSecret")
        case .refreshToken:
            options.requireOne(of: "tokenUrl", "issuer")
            options.require("clientId")
            options.require(anyOf: ["refreshToken", "file"], "has no refresh token")
            // Any other lock keeps the tokens, or is reported as an error.
            if options.isGiven("refreshToken"), !options.isGiven("file"), lockWord == "process" {
                options.warn(
                    at: "refreshToken",
                    "if the server rotates refresh tokens, this one is invalid after a restart; write file")
            }
        }
        for (key, url) in [("tokenUrl", tokenUrl), ("issuer", issuer)] {
            guard let url, !url.isSecure, !url.isLoopback else { continue }
            options.warn(at: key, "sends credentials without TLS; write https (RFC 6749 §3.2)")
        }
        if let value, !TokenResponse.isToken(value.revealed) {
            options.fail(at: "value", "contains a character that is invalid in a token")
        }
        if let refreshToken, !TokenResponse.isToken(refreshToken.revealed) {
            options.fail(at: "refreshToken", "contains a character that is invalid in a token")
        }
        for scope in scopes where scope.isEmpty || !scope.utf8.allSatisfy(TokenResponse.isScopeByte) {
            options.fail(at: "scopes", "\(scope.quotedForErrors) is not a scope (RFC 6749 §3.3)")
        }
    }
}
