import Credentials
import HttpWare
import HttpWareTesting

@testable import Wares

/// A credential whose token endpoint is a script, and exchanges that pass `tokenRefresh` and `tokenInject` for it, on loops of
/// their own with one clock.
struct TokenStage {
    let client = ScriptedClient()
    let credential: Credential
    let clock = ManualClock()
    let records = RecordRing(mostRecords: 1000, mostBytes: .mebibytes(4))
    let exchange: TestExchange
    private let wares: [any Ware]

    init(
        _ change: (inout CredentialDefinition) -> Void = { _ in }, hold: HoldLimits = HoldLimits(),
        maxBody: ByteCount = .mebibytes(1), onFailure: TokenRefresh.OnFailure = .unavailable,
        more: (Credential) -> [any Ware] = { _ in [] }
    ) throws {
        var definition = CredentialDefinition(name: "orders", grant: .refreshToken)
        definition.tokenUrl = EndpointUrl("http://127.0.0.1:9/token")
        definition.clientId = "gateway"
        definition.clientSecret = Secret("s3cret-client")
        definition.refreshToken = Secret("s3cret-refresh-0")
        definition.refreshBefore = .zero
        definition.retry = 0
        change(&definition)
        credential = Credential(definition, client: client)
        wares =
            more(credential) + [
                TokenRefresh(credential: credential, hold: hold, maxBody: maxBody, onFailure: onFailure),
                TokenInject(credential: credential),
            ]
        var setting = TestExchange.Setting()
        setting.clock = clock
        setting.records = records
        exchange = try TestExchange(wares, setting: setting)
    }

    /// The same chain on another loop.
    func another() throws -> TestExchange {
        var setting = TestExchange.Setting()
        setting.clock = clock
        return try TestExchange(wares, setting: setting)
    }

    /// Lets the token endpoint give a token, and waits until it is in force.
    func issue(_ number: Int, lifetime: Int = 100) async {
        await untilAsked()
        client.answerCall(json: TokenStage.token(number, lifetime: lifetime))
        while credential.report().state == .refreshing { await Task.yield() }
    }

    static func token(_ number: Int, lifetime: Int) -> String {
        #"{"access_token":"s3cret-token-\#(number)","token_type":"Bearer","expires_in":\#(lifetime),"#
            + #""refresh_token":"s3cret-refresh-\#(number)"}"#
    }

    /// Waits until a call to the token endpoint is under way.
    func untilAsked() async { while client.waitingCount == 0 { await Task.yield() } }

    /// Waits until this number of requests is held.
    func untilHeld(_ count: Int) async { while credential.report().held != count { await Task.yield() } }

    /// Gets the first token.
    func begin(lifetime: Int = 100) async throws {
        let first = await exchange.start(.get("/first"))
        await issue(1, lifetime: lifetime)
        _ = try await first.response()
    }

    /// The values of `Authorization` that were sent upstream.
    var sent: [String] { exchange.upstream.requests.map { $0.fields[.authorization] ?? "" } }
}

extension HttpResponse {
    /// A refusal by an origin server.
    static func refused(_ challenge: String?, _ status: HttpStatus = .unauthorized) -> HttpResponse {
        var response = HttpResponse(status)
        if let challenge { try? response.fields.set(.wwwAuthenticate, to: challenge) }
        return response
    }
}
