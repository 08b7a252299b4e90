import Authentication
import HttpWare
import Wares

/// Refusals of requests without valid credentials: 401 with `WWW-Authenticate`; on a forward listener 407 with
/// `Proxy-Authenticate`. In an intercepted tunnel it is 403, because the client believes that it talks to the origin server. RFC
/// 9110 §11.6.1, §11.7.1, §15.5.2, §15.5.8.
enum AuthenticationChallenge {
    /// Refuses with a challenge, such as `Basic realm="x"`. It must be a valid field value, without control characters.
    static func refuse(_ exchange: Exchange, _ challenge: String, _ detail: String) -> Verdict {
        refuse(exchange, status(exchange), challenge, detail)
    }

    /// The status of a refusal.
    static func status(_ exchange: Exchange) -> HttpStatus {
        if exchange.isIntercepted { return .forbidden }
        return exchange.isForward ? .proxyAuthenticationRequired : .unauthorized
    }

    /// Refuses with another status, such as 403 if the credentials do not allow the request. RFC 6750 §3.1.
    static func refuse(
        _ exchange: Exchange, _ status: HttpStatus, _ challenge: String, _ detail: String
    ) -> Verdict {
        var response = HttpResponse.problem(status, detail)
        // No credentials of the client would help in a tunnel.
        if exchange.isIntercepted { return .abort(with: response) }
        let name: FieldName = exchange.isForward ? .proxyAuthenticate : .wwwAuthenticate
        // A challenge that is invalid in a field is a bug of the caller; the request is then refused without it.
        try? response.fields.set(name, to: challenge)
        return .abort(with: response)
    }

    /// Refuses with 503, because a decision is not possible at the moment. RFC 9110 §15.6.4.
    static func tryLater(_ detail: String, after seconds: Int) -> Verdict {
        var response = HttpResponse.problem(.serviceUnavailable, detail)
        try? response.fields.set(.retryAfter, to: String(seconds))
        return .abort(with: response)
    }

    /// A parameter's value as a quoted string. RFC 9110 §5.6.4.
    static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    /// The default `realm`.
    static let realm = "httpware"

    /// Whether the text is valid in a challenge.
    static func isRealm(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 255 && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }
}

extension OptionsReader {
    /// Reads a file of credentials, and reports its mistakes at their places in the file.
    mutating func readCredentials<Value>(
        _ key: String, doc: String, _ parse: ([UInt8], inout [FileMistake]) -> Value
    ) -> Value? {
        var path: FilePath?
        read(key, into: &path, doc: doc)
        require(key)
        guard let path, let content = LoadedFile.read(path.path, key, &self) else { return nil }
        var mistakes: [FileMistake] = []
        let value = parse(content, &mistakes)
        for mistake in mistakes.prefix(20) {
            let place = SourceLocation(file: path.path, line: mistake.line, column: mistake.column)
            fail(at: key, in: place, mistake.message)
        }
        return value
    }
}
