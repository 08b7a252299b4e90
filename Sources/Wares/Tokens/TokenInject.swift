public import Credentials
public import HttpWare
import Synchronization

/// Puts a token into requests: that of a credential, or one that is written.
///
/// The client's own field is left as it is unless `overwrite` says otherwise. Without `tokenRefresh` before it, a request for
/// which there is no token yet waits for the first one, as behind `tokenRefresh` with its defaults.
///
/// | option       | type                      | default         | allowed |
/// |--------------|---------------------------|-----------------|---------|
/// | `credential` | name under `credentials`  | one of the three |        |
/// | `value`      | secret text               |                 |         |
/// | `file`       | path                      |                 |         |
/// | `header`     | field name                | `Authorization` |         |
/// | `scheme`     | text                      | `Bearer`        | empty for none |
/// | `overwrite`  | boolean                   | `false`         |         |
public struct TokenInject: Middleware, CredentialUser {
    public let credential: Credential?
    /// The field that carries the token.
    public let header: FieldName
    /// What stands before the token; empty for nothing.
    public let scheme: String
    /// Whether a field that the client sent is replaced.
    public let overwrite: Bool
    /// The line of a token that never changes.
    private let standing: FieldLine?
    private let made = LastLine()

    public var credentialUse: CredentialUse { .injects }
    public var bindsAuthority: Bool { true }

    /// Injects the tokens of a credential.
    public init(
        credential: Credential, header: FieldName = .authorization, scheme: String = "Bearer", overwrite: Bool = false
    ) {
        self.init(credential, header, scheme, overwrite, nil)
    }

    /// Injects one token. Throws where it cannot stand in a field line.
    public init(
        value: Secret, header: FieldName = .authorization, scheme: String = "Bearer", overwrite: Bool = false
    ) throws(InvalidFieldValue) {
        self.init(
            nil, header, scheme, overwrite, try TokenInject.line(header, scheme, value))
    }

    private init(
        _ credential: Credential?, _ header: FieldName, _ scheme: String, _ overwrite: Bool, _ standing: FieldLine?
    ) {
        self.credential = credential
        self.header = header
        self.scheme = scheme
        self.overwrite = overwrite
        self.standing = standing
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if !overwrite, request.fields.contains(header) {
            exchange.note("the client's own \(header)", asDecision: false)
            return .pass
        }
        if exchange[WantsCredentials.self] == false { return .pass }
        if request.method == .trace { return leaveTrace(exchange) }
        if let standing {
            request.fields.set(standing)
            exchange.bindAuthority(of: request)
            return .pass
        }
        let wall = exchange.wallNow
        if let number = credential?.freshNumber(at: wall), made.set(number, in: &request.fields) {
            if let credential { CarriedTokens.note(credential, number, in: exchange) }
            exchange.bindAuthority(of: request)
            return .pass
        }
        return lookClosely(&request, exchange, wall)
    }

    /// The response to TRACE is the request: the client would have the token. RFC 9110 §9.3.8.
    @inline(never)
    private func leaveTrace(_ exchange: Exchange) -> Verdict {
        exchange.note("no token in TRACE", asDecision: false)
        return .pass
    }

    /// Apart from those whose token is fresh, who would pay for what this one has to hold.
    @inline(never)
    private func lookClosely(_ request: inout HttpRequest, _ exchange: Exchange, _ wall: WallTime) -> Verdict {
        guard let credential else { return .pass }
        if let token = credential.current(wall) { return inject(token, of: credential, into: &request, exchange) }
        // A dry run has no token, and shows where it would stand.
        if exchange.isDryRun, let line = try? TokenInject.line(header, scheme, Secret("<token of \(credential.name)>"))
        {
            request.fields.set(line)
        }
        return TokenHold.enter(credential, HoldLimits(), kept: 0, request, exchange, at: wall) {
            request, exchange in
            guard let token = credential.current(exchange.wallNow) else {
                return .abort(with: TokenHold.refusal(credential, nil))
            }
            return inject(token, of: credential, into: &request, exchange)
        }
    }

    private func inject(
        _ token: IssuedToken, of credential: Credential, into request: inout HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        guard let line = try? TokenInject.line(header, scheme, token.value) else {
            return .abort(with: TokenHold.refusal(credential, nil))
        }
        made.keep(line, of: token.number)
        request.fields.set(line)
        CarriedTokens.note(credential, token.number, in: exchange)
        exchange.bindAuthority(of: request)
        return .pass
    }

    private static func line(_ header: FieldName, _ scheme: String, _ value: Secret) throws(InvalidFieldValue)
        -> FieldLine
    {
        try FieldLine(header, scheme.isEmpty ? value.revealed : "\(scheme) \(value.revealed)")
    }
}

/// The field line of the last token: made once for each, for all loops. Guarded by a mutex.
private final class LastLine: Sendable {
    private let last = Mutex<(number: Int, line: FieldLine)?>(nil)

    /// Sets the line of the token of this number; false where another was made last, or another loop is at it just now, for
    /// which nobody waits. Under the lock, where the line need not be retained.
    func set(_ number: Int, in fields: inout HttpFields) -> Bool {
        last.withLockIfAvailable { last in
            guard last?.number == number else { return false }
            if let line = last?.line { fields.set(line) }
            return true
        } ?? false
    }

    /// A newer one stays.
    func keep(_ line: FieldLine, of number: Int) {
        last.withLock { last in if last.map({ $0.number < number }) ?? true { last = (number, line) } }
    }
}

extension TokenInject: ConfigurableWare {
    public static let name: WareName = "tokenInject"
    public static let about = WareAbout(
        "Puts a token into requests: that of a credential, or one that is written.", source: "RFC 6750 §2.1",
        example: #"""
            - tokenRefresh: { credential: orders-oauth }
            - tokenInject: { credential: orders-oauth }
            - tokenInject: { value: "${API_KEY:-change-me}", header: X-Api-Key, scheme: "" }
            """#,
        details: #"""
            The client's own field is left as it is unless `overwrite` says otherwise.

            The token is for the place that the request goes to here. With the service `passthrough`, a ware further in that sends the
            request to another scheme, host or port has it refused with 500 (`proxy_configuration_error`): put `rewrite` first. A TRACE
            request gets no token, because its response would show it to the client (RFC 9110 §9.3.8).

            Put `tokenRefresh` with the same credential before it. Without, a request for which there is no token yet waits for
            the first one as there by default, and a 401 goes to the client.
            """#)

    public init(options: inout OptionsReader) {
        var credential: Credential?
        var value: Secret?
        var file: FilePath?
        var header = FieldName.authorization
        var scheme = "Bearer"
        var overwrite = false
        options.read("credential", into: &credential, of: "credentials", doc: "its tokens")
        options.readSecret("value", into: &value, doc: "the token itself")
        options.read("file", into: &file, doc: "a file that holds it, read when the configuration is loaded")
        options.requireOne(of: "credential", "value", "file")
        options.read("header", into: &header, doc: "the field that carries it")
        options.read("scheme", into: &scheme, doc: "what stands before it; \"\" for nothing")
        options.read("overwrite", into: &overwrite, doc: "whether the client's own field is replaced")
        if header.isGatewayOwned || header == .host {
            options.fail(at: "header", "\(header) is the gateway's own; it cannot carry a token")
            header = .authorization
        }
        if let file, let bytes = FileContent.read(file.path, "file", &options) {
            var text = String(decoding: bytes, as: UTF8.self)
            if text.hasSuffix("\n") { text.removeLast() }
            value = Secret(text)
        }
        var standing: FieldLine?
        if let value {
            standing = try? TokenInject.line(header, scheme, value)
            if standing == nil || value.revealed.isEmpty {
                let key = options.isGiven("file") ? "file" : "value"
                options.fail(
                    at: key, "cannot be sent in a field: it is empty, or holds a line end or another control character")
            }
        } else if (try? TokenInject.line(header, scheme, Secret("x"))) == nil {
            options.fail(at: "scheme", "cannot stand in a field")
        }
        self.init(credential, header, scheme, overwrite, standing)
    }
}
