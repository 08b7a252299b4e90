import Credentials
import Glibc
import HttpWare

/// The keys of an AWS identity.
struct AwsKeys: Sendable, Equatable {
    let accessKeyId: String
    let secretAccessKey: Secret
    /// Present only with temporary keys.
    let sessionToken: Secret?

    /// `nil` if a key is empty, too long, or contains an invalid byte.
    init?(_ accessKeyId: String, _ secretAccessKey: Secret, _ sessionToken: Secret?) {
        let session = sessionToken.flatMap { $0.revealed.isEmpty ? nil : $0 }
        guard AwsKeys.isKey(accessKeyId, 256), AwsKeys.isKey(secretAccessKey.revealed, 1024),
            session.map({ AwsKeys.isKey($0.revealed, 16_384) }) ?? true
        else { return nil }
        self.accessKeyId = accessKeyId
        self.secretAccessKey = secretAccessKey
        self.sessionToken = session
    }

    private static func isKey(_ text: String, _ most: Int) -> Bool {
        (1...most).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x7c }
    }

    // MARK: As the token of a credential

    /// The keys as one text, which a credential stores as its token.
    var packed: Secret {
        Secret([accessKeyId, secretAccessKey.revealed, sessionToken?.revealed ?? ""].joined(separator: "|"))
    }

    init?(packed: Secret) {
        let parts = packed.revealed.split(separator: "|")
        guard parts.count == 2 || parts.count == 3 else { return nil }
        self.init(String(parts[0]), Secret(String(parts[1])), parts.count == 3 ? Secret(String(parts[2])) : nil)
    }

    // MARK: Sources

    /// The keys in the environment; `nil` if they are missing or invalid.
    static func inEnvironment(_ value: (String) -> String? = AwsKeys.variable) -> AwsKeys? {
        guard let id = value("AWS_ACCESS_KEY_ID"), let secret = value("AWS_SECRET_ACCESS_KEY") else { return nil }
        return AwsKeys(id, Secret(secret), value("AWS_SESSION_TOKEN").map { Secret($0) })
    }

    /// An environment variable; `nil` if it is not set or empty.
    static func variable(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    /// The keys of a profile in a shared credentials file; `nil` if they are missing or invalid.
    init?(file content: [UInt8], profile: String) {
        var isWanted = false
        var values: [String: String] = [:]
        for line in String(decoding: content, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let line = AwsKeys.trimmed(line)
            if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
            if line.hasPrefix("["), line.hasSuffix("]") {
                let name = AwsKeys.trimmed(line.dropFirst().dropLast())
                isWanted = name == profile || name == "profile \(profile)"
            } else if isWanted, let equals = line.firstIndex(of: "=") {
                let name = AwsKeys.trimmed(line[..<equals]).lowercased()
                values[name] = String(AwsKeys.trimmed(line[line.index(after: equals)...]))
            }
        }
        guard let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"] else { return nil }
        self.init(id, Secret(secret), values["aws_session_token"].map { Secret($0) })
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return start[start.endIndex...] }
        return start[...last]
    }
}

/// The keys are not available; the next attempt may succeed.
struct AwsKeysFault: LastingFailure, Equatable {
    let reason: String
    var isLasting: Bool { false }
}

/// Keys of a shared credentials file, which another program may replace at any time.
struct AwsFileSource: TokenSource {
    let path: String
    let profile: String

    /// The keys are read again after half of this time.
    static let lifetime = Duration.seconds(600)
    static let mostBytes = 256 * 1024

    func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
        let path = self.path
        // Read away from the loops, because the disk may be slow.
        let content = await FileTree.readers.value { AwsFileSource.read(path) }
        guard let content else { throw AwsKeysFault(reason: "the credentials file cannot be read") }
        guard let keys = AwsKeys(file: content, profile: profile) else {
            throw AwsKeysFault(reason: "the credentials file has no keys for the profile")
        }
        return NewToken(keys.packed, lifetime: AwsFileSource.lifetime)
    }

    /// The bytes of a file; `nil` if it cannot be read, or is too large.
    static func read(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0, content.count + count <= mostBytes else { return nil }
            if count == 0 { return content }
            content += buffer[..<count]
        }
    }
}

/// Temporary keys from the endpoint that ECS and EKS provide to a container.
struct AwsContainerSource: TokenSource {
    let url: String
    /// The value of `Authorization`, or the file that holds it; both are `nil` if the endpoint needs no authorization.
    let authorization: Secret?
    let authorizationFile: String?
    let client: any HttpClient

    private static let limits = CallLimits(timeout: .seconds(5), content: .kibibytes(64))
    /// The time after which keys without a stated expiration are requested again.
    private static let usualLifetime = Duration.seconds(3600)

    /// The endpoint named by the environment. Throws a sentence that says what is wrong with it.
    init(client: any HttpClient, _ value: (String) -> String? = AwsKeys.variable) throws(AwsKeysFault) {
        self.client = client
        if let path = value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            url = "http://169.254.170.2\(path)"
            guard path.hasPrefix("/"), (try? HttpRequest(.get, url)) != nil else {
                throw AwsKeysFault(reason: "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not a path")
            }
        } else if let full = value("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            url = full
            guard let request = try? HttpRequest(.get, full), let host = request.host else {
                throw AwsKeysFault(reason: "AWS_CONTAINER_CREDENTIALS_FULL_URI is not an http or https URL")
            }
            guard request.scheme == "https" || AwsContainerSource.isLocal(host) else {
                throw AwsKeysFault(
                    reason:
                        "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither an https URL nor an address of this host or the container service"
                )
            }
        } else {
            throw AwsKeysFault(
                reason:
                    "the environment has neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI"
            )
        }
        authorizationFile = value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        authorization = value("AWS_CONTAINER_AUTHORIZATION_TOKEN").map { Secret($0) }
    }

    /// Whether keys may be requested from this host in clear text.
    private static func isLocal(_ host: String) -> Bool {
        host == "localhost" || host == "[::1]" || host == "169.254.170.2" || host == "169.254.170.23"
            || host == "[fd00:ec2::23]" || IPAddress(host)?.isIPv4 == true && host.hasPrefix("127.")
    }

    func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
        var request = try HttpRequest(.get, url)
        if let authorization = await currentAuthorization() {
            guard (try? request.fields.set(.authorization, to: authorization)) != nil else {
                throw AwsKeysFault(reason: "the authorization token of the container is not a field value")
            }
        }
        let response: HttpResponse
        do {
            response = try await client.send(request, limits: AwsContainerSource.limits)
        } catch {
            let reason = (error as? GatewayError)?.reason ?? "the call was cancelled"
            throw AwsKeysFault(reason: "the container's credentials endpoint: \(reason)")
        }
        let now = EventLoop.current?.wallNow() ?? WallTime(seconds: 0)
        return try AwsContainerSource.token(in: response, at: now)
    }

    /// Reads the response: `AccessKeyId`, `SecretAccessKey`, `Token` and `Expiration`.
    static func token(in response: HttpResponse, at now: WallTime) throws(AwsKeysFault) -> NewToken {
        guard response.status == .ok else {
            throw AwsKeysFault(reason: "the container's credentials endpoint: status \(response.status.code)")
        }
        guard let json = response.content.bytes.flatMap({ try? JsonValue($0) }), let id = json["AccessKeyId"]?.string,
            let secret = json["SecretAccessKey"]?.string,
            let keys = AwsKeys(id, Secret(secret), json["Token"]?.string.map { Secret($0) })
        else { throw AwsKeysFault(reason: "the container's credentials endpoint sent no usable keys") }
        guard let text = json["Expiration"]?.string else { return NewToken(keys.packed, lifetime: usualLifetime) }
        guard let end = WallTime(iso8601: text) else {
            throw AwsKeysFault(reason: "the container's credentials endpoint sent an invalid Expiration")
        }
        let left = end - now
        guard left >= .seconds(1) else {
            throw AwsKeysFault(reason: "the container's credentials endpoint sent keys that have expired")
        }
        return NewToken(keys.packed, lifetime: left)
    }

    /// The file is read each time, because EKS replaces it.
    private func currentAuthorization() async -> String? {
        guard let path = authorizationFile else { return authorization?.revealed }
        let content = await FileTree.readers.value { AwsFileSource.read(path) }
        return content.map { String(decoding: $0, as: UTF8.self).filter { !$0.isNewline } }
    }
}
