import Authentication
import HttpWare

/// The refusals of a bearer token by RFC 6750 §3.
enum BearerToken {
    /// The maximum length of a token, in bytes.
    static let longest = 16 << 10

    /// Passes the token of a request to `body`. On a forward listener the token is in `Proxy-Authorization`, else in one of
    /// these places. Two tokens are an error: §2, "Clients MUST NOT use more than one method to transmit the token".
    static func withValue<Result>(
        _ request: borrowing HttpRequest, in exchange: Exchange, from places: [CredentialPlace],
        _ body: (UnsafeRawBufferPointer, CredentialPlace?) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        if exchange.isForward {
            let result = try request.withOnlyProxyAuthorization { text in
                try AuthorizationValue.credentials(of: text, scheme: "bearer").map { try body($0, nil) }
            }
            return switch result {
            case .several: .several
            case .absent, .one(nil): .absent
            case .one(let value?): .one(value)
            }
        }
        var found = OnlyValue<Result>.absent
        for place in places {
            let here = try place.withValue(request) { try body($0, place) }
            switch (here, found) {
            case (.absent, _): continue
            case (.several, _), (.one, .one), (.one, .several): return .several
            case (.one, .absent): found = here
            }
        }
        return found
    }

    /// Refuses a request without a token. §3.1: "If the request lacks any authentication information …, the resource server
    /// SHOULD NOT include an error code".
    static func missing(_ exchange: Exchange) -> Verdict {
        exchange.note("no token")
        return AuthenticationChallenge.refuse(
            exchange, "Bearer realm=\"\(AuthenticationChallenge.realm)\"", "the bearer token is missing")
    }

    /// Refuses a request with several tokens. §3.1: *invalid_request*, 400.
    static func repeated(_ exchange: Exchange) -> Verdict {
        refuse(exchange, .badRequest, "invalid_request", "the request carries more than one token")
    }

    /// Refuses a request with an invalid token. §3.1: *invalid_token*, 401.
    static func invalid(_ exchange: Exchange, _ reason: String) -> Verdict {
        refuse(exchange, AuthenticationChallenge.status(exchange), "invalid_token", reason)
    }

    /// Refuses a request whose token lacks a scope. §3.1: *insufficient_scope*, 403, with the required scope.
    static func insufficient(_ exchange: Exchange, _ reason: String, scope: String?) -> Verdict {
        refuse(
            exchange, .forbidden, "insufficient_scope", reason,
            scope.map { ", scope=\(AuthenticationChallenge.quoted($0))" } ?? "")
    }

    private static func refuse(
        _ exchange: Exchange, _ status: HttpStatus, _ error: String, _ reason: String, _ more: String = ""
    ) -> Verdict {
        exchange.note(reason)
        // `error_description` contains only ASCII, without quotes and backslashes: §3.
        let description = String(
            decoding: reason.utf8.map { 0x20..<0x7f ~= $0 && $0 != 0x22 && $0 != 0x5c ? $0 : 0x27 }, as: UTF8.self)
        return AuthenticationChallenge.refuse(
            exchange, status,
            "Bearer realm=\"\(AuthenticationChallenge.realm)\", error=\"\(error)\", error_description=\"\(description)\"\(more)",
            reason)
    }
}
