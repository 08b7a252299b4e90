import Credentials
import Wares
import HttpWare

/// The innermost ware of a client. It comes after all other wares, so they see the request that the program sent and the
/// response that the program gets. It keeps accounts apart, names the client, and decodes content.
struct ClientEdge: Middleware, Postware {
    /// The credentials of the chain.
    let credentials: [Credential]

    var order: WareOrder { .last }

    /// Marks that the client itself added `Accept-Encoding` to the request.
    enum AsksForCodings: ExchangeKey { typealias Value = Bool }

    /// The client's name, unless the program sets one. RFC 9110 §10.1.5.
    static let userAgent = "httpware/\(ProgramVersion.text)"

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        if !credentials.isEmpty, exchange[WantsCredentials.self] != false { try checkAccounts(exchange) }
        if !request.fields.contains(.userAgent) { try request.fields.set(.userAgent, to: ClientEdge.userAgent) }
        return .pass
    }

    /// Checks that the request carries no token of another account than the one it was made for. While it waited, another
    /// account may have logged in.
    private func checkAccounts(_ exchange: Exchange) throws(AccountChanged) {
        for credential in credentials {
            let number = exchange[CarriedTokens.self]?.number(of: credential)
            let isSame = exchange.principals.contains { credential.isAccount($0, ofToken: number) }
            guard isSame else { throw AccountChanged(credential: credential.name) }
        }
    }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        // A part of coded content cannot be decoded alone. RFC 9110 §14.
        guard exchange[AsksForCodings.self] == true, response.fields.contains(.contentEncoding),
            !response.content.isEmpty, response.status != .partialContent, exchange.request?.method != .head
        else { return .pass }
        let codings = response.fields.values(of: .contentEncoding)
        // The caller limits the length of whole content, and takes a stream at its own pace: the ratio needs no limit.
        guard let decoder = ContentDecoder(codings, growth: .unlimited) else {
            throw DecodingFilter.fault("the content coding \(codings.joined(separator: ", ")) was not asked for")
        }
        response.fields.remove(.contentEncoding)
        guard !decoder.isIdentity else { return .pass }
        exchange.note(codings.joined(separator: ", "), asDecision: true)
        exchange.filterResponseContent(with: DecodingFilter(decoder))
        exchange.responseContentChanges()
        // The stated length is that of the coded content.
        if response.content.bytes == nil { response.content = .streamed() }
        return .pass
    }
}

/// Another account logged in while the request waited, so it was not sent.
public struct AccountChanged: Error, Sendable, CustomStringConvertible {
    /// The name of the credential; `of the cookies` for a jar.
    public let credential: String

    public init(credential: String) { self.credential = credential }

    public var description: String { "the account of credential \(credential) changed while the request waited" }
}
