package import Credentials
package import HttpWare

/// Holds requests that wait for a credential's token, and refuses requests for which there is no token.
package enum TokenHold {
    /// Holds a request until the credential has a token, then calls `done`. Refuses the request at once if no token is on its
    /// way, or too many requests wait. `kept` is how many bytes of its content may arrive meanwhile, in addition to the buffer
    /// of a connection.
    package static func holdRequest(
        _ credential: Credential, _ limits: HoldLimits, kept: Int, _ request: HttpRequest, _ exchange: Exchange,
        at wall: WallTime, done: @escaping (inout HttpRequest, Exchange) -> Verdict
    ) -> Verdict {
        // A dry run starts no refresh, because the request would wait for the token.
        if exchange.isDryRun { return .wait { request, exchange in done(&request, exchange) } }
        let bytes = size(of: request, kept: kept)
        switch credential.takePlace(bytes: bytes, limits: limits, at: wall) {
        case .ready: return .wait { request, exchange in done(&request, exchange) }
        case .refused(let failure):
            exchange.note(failure.reason)
            return .abort(with: refusal(credential, failure, exchange))
        case .held(let place):
            return .wait { request, exchange in
                let outcome = try await place.outcome()
                exchange.note(words(place, exchange))
                switch outcome {
                case .ready: return done(&request, exchange)
                case .failed(let failure):
                    exchange.note(failure.reason)
                    return .abort(with: refusal(credential, failure, exchange))
                case .timedOut:
                    credential.noteTimeout()
                    return .abort(with: refusal(credential, nil, exchange))
                }
            }
        }
    }

    /// The size of a waiting request in bytes: its head, and the content that is read while it waits.
    static func size(of request: HttpRequest, kept: Int) -> Int {
        let content = request.content.isEmpty ? 0 : min(request.content.length ?? .max, 65536 + kept)
        return request.headSize + content
    }

    /// The note of a wait: *held 212ms behind refresh 7*.
    static func words(_ place: HoldPlace, _ exchange: Exchange) -> String {
        "held \(place.held(until: exchange.now).milliseconds)ms behind refresh \(place.refresh)"
    }

    /// Makes a 503 with `Retry-After` (RFC 9110 §15.6.4) and the reason, without any credential. A `failure` of `nil` means that
    /// the wait was too long. A client that owns the credential gets 401 if only a new login helps.
    package static func refusal(_ credential: Credential, _ failure: CredentialFailure?, _ exchange: Exchange)
        -> HttpResponse
    {
        let reason = failure?.reason ?? "no token was received in time"
        if let failure, CredentialProblem.note(credential, failure, in: exchange), failure.endsLogin {
            var response = HttpResponse.problem(.unauthorized, "credential \(credential.name): \(reason)")
            response.fields.append(TokenHold.challenge)
            return response
        }
        var response = HttpResponse.problem(.serviceUnavailable, "credential \(credential.name): \(reason)")
        let seconds = failure?.retryAfter.map(RetryAfter.seconds) ?? 1
        response.fields.set(.retryAfter, to: seconds)
        return response
    }

    /// A 401 must have a challenge. RFC 9110 §15.5.2.
    private static let challenge = FieldLine(literal: .wwwAuthenticate, "Bearer error=\"invalid_token\"")
}
