import HttpCaching
import HttpWareTesting
import Testing

@testable import Authentication
@testable import Credentials
@testable import HttpWare
@testable import GatewayWares

/// A provider that a test scripts, a gateway before an origin server, and a browser that keeps the gateway's cookies.
final class OidcStand {
    static let issuer = "https://login.example.com"
    static let keys = "\(issuer)/keys"
    static let token = "\(issuer)/token"
    static let metadata = "\(issuer)/.well-known/openid-configuration"
    static let secret = "a secret of the tests, thirty-two bytes and more"
    /// 2026-01-01T00:00:00Z, where the clock stands.
    static let start = 1_767_225_600

    let calls: ScriptedCalls
    let ware: OidcLogin
    let exchange: TestExchange
    /// The cookies of the browser.
    var cookies: [String: String] = [:]
    /// How far the clock went.
    var elapsed = 0

    /// The options of the gateway of a test.
    struct Make {
        var clientId = "app"
        var cookie = "session"
        var clientSecret: Secret? = Secret("a secret")
        var secrets = [OidcStand.secret]
        var claims: [(claim: String, field: FieldName)] = [("sub", "X-User"), ("email", "X-Email")]
        var passesToken = false
        var store: (any RecordStore)?
        var lock: (any IdempotencyServer)?
        var isSecure = true
        var around: [any Ware] = []
        var behind: [any Ware] = []
        var calls: ScriptedCalls?
        var change: (inout OidcLogin) -> Void = { _ in }
    }

    init(_ change: (inout Make) -> Void = { _ in }) throws {
        var make = Make()
        change(&make)
        let isNew = make.calls == nil
        calls = make.calls ?? ScriptedCalls()
        let provider = OidcProvider(
            issuer: try #require(EndpointUrl(Self.issuer)), clientId: make.clientId, clientSecret: make.clientSecret,
            client: calls)
        let cookies = OidcCookies(
            make.cookie, secrets: make.secrets.map { Secret($0) }, issuer: Self.issuer, clientId: make.clientId)
        var ware = OidcLogin(
            OidcSessions(
                provider, cookies, claims: make.claims, lifetime: .seconds(12 * 3600), renews: true,
                passesToken: make.passesToken, store: make.store, lock: make.lock),
            claimsToHeaders: make.claims)
        make.change(&ware)
        self.ware = ware
        var setting = TestExchange.Setting()
        if make.isSecure { setting.trustedProxies = [try #require(IPNetwork("203.0.113.0/24"))] }
        exchange = try TestExchange(make.around + [ware] + make.behind, setting: setting)
        guard isNew else { return }
        calls.script(Self.metadata, ScriptedCalls.json(Self.metadata().utf8))
        calls.script(Self.keys, ScriptedCalls.json(Self.keySet.utf8))
    }

    // MARK: The provider

    static func metadata(_ more: String = "") -> String {
        #"{"issuer":"\#(issuer)","authorization_endpoint":"\#(issuer)/authorize","token_endpoint":"\#(token)","jwks_uri":"\#(keys)","end_session_endpoint":"\#(issuer)/logout"\#(more)}"#
    }

    static let keySet =
        #"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"one","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}]}"#

    /// An ID token with these claims, signed by the provider.
    static func sign(_ claims: String, header: String = #"{"alg":"EdDSA","kid":"one"}"#) throws -> String {
        let key = try #require(SigningKey(pem: SignatureVectors.ed25519Private))
        let signed = Base64.encodeUrl(Array(header.utf8)) + "." + Base64.encodeUrl(Array(claims.utf8))
        let signature = try #require(Array(signed.utf8).withUnsafeBytes { key.sign($0, by: .edDSA) })
        return signed + "." + Base64.encodeUrl(signature)
    }

    var now: Int { Self.start + elapsed }

    func claims(nonce: String, sub: String = "ada", more: String = "") -> String {
        #"{"iss":"\#(Self.issuer)","aud":"app","sub":"\#(sub)","nonce":"\#(nonce)","iat":\#(now),"exp":\#(now + 300)\#(more)}"#
    }

    /// The answer of the token endpoint.
    static func tokens(_ idToken: String?, refresh: String? = "r1", lifetime: Int = 300, access: String = "access1")
        -> ScriptedCalls.Step
    {
        let members = [
            #""access_token":"\#(access)","token_type":"Bearer","expires_in":\#(lifetime)"#,
            idToken.map { #""id_token":"\#($0)""# }, refresh.map { #""refresh_token":"\#($0)""# },
        ]
        return ScriptedCalls.json("{\(members.compactMap(\.self).joined(separator: ","))}".utf8)
    }

    /// The calls to the token endpoint, as forms.
    var tokenCalls: [String] {
        calls.requests.filter { $0.receivedTarget == Self.token }.map { $0.content.text ?? "" }
    }

    func count(_ url: String) -> Int { calls.requests.count { $0.receivedTarget == url } }

    // MARK: The browser

    static let page: HttpFields = ["Accept": "text/html", "Sec-Fetch-Mode": "navigate"]
    static let script: HttpFields = ["Accept": "*/*", "Sec-Fetch-Mode": "cors"]

    func request(
        _ method: HttpMethod, _ path: String, _ fields: HttpFields = OidcStand.page, also cookie: String? = nil
    ) throws -> HttpRequest {
        var fields = fields
        let all = cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" } + [cookie].compactMap(\.self)
        if !all.isEmpty { try fields.append(.cookie, all.joined(separator: "; ")) }
        try fields.append(.xForwardedProto, "https")
        return .make(method, path, fields: fields)
    }

    @discardableResult
    func send(
        _ path: String, _ fields: HttpFields = OidcStand.page, method: HttpMethod = .get, also cookie: String? = nil
    ) async throws -> HttpResponse {
        let response = try await exchange.send(request(method, path, fields, also: cookie))
        take(response)
        return response
    }

    /// Takes the cookies of a response, as a browser does.
    func take(_ response: HttpResponse) {
        for line in response.fields.values(of: .setCookie) {
            let parts = line.split(separator: ";", maxSplits: 1)
            let pair = parts[0].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let isOver = line.contains("Max-Age=0;")
            cookies[String(pair[0])] = isOver ? nil : String(pair[1])
        }
    }

    func advance(by seconds: Int) async {
        elapsed += seconds
        await exchange.advance(by: .seconds(seconds))
    }

    /// The parameters of the login that a redirect begins.
    static func parameters(_ response: HttpResponse) throws -> [String: String] {
        let location = try #require(response.fields[.location])
        let request = try HttpRequest(.get, location)
        var found: [String: String] = ["": location.prefix { $0 != "?" }.description]
        for pair in try #require(request.query).split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            found[String(parts[0])] = String(decoding: QueryParameters.decoded(parts[1].utf8), as: UTF8.self)
        }
        return found
    }

    /// Opens a page without a session, logs in at the provider, and comes back; answers the last response.
    @discardableResult
    func logIn(
        to path: String = "/orders?a=b", refresh: String? = "r1", lifetime: Int = 300, sub: String = "ada",
        claims more: String = #","email":"ada@example.com""#
    ) async throws -> HttpResponse {
        let parameters = try Self.parameters(await send(path))
        let idToken = try Self.sign(
            claims(nonce: try #require(parameters["nonce"]), sub: sub, more: more))
        calls.script(Self.token, Self.tokens(idToken, refresh: refresh, lifetime: lifetime))
        return try await send("/oauth2/callback?state=\(try #require(parameters["state"]))&code=c1")
    }
}
