public import Credentials
public import HttpWare

/// Handles 401 responses: replaces the content, redirects to a login page, or discards the stored token.
public struct Unauthorized: Postware, CredentialUser {
    /// An action on a 401 response.
    public enum Action: Sendable {
        /// The response is passed on unchanged, and noted in the record.
        case passthrough
        /// The content is replaced by this text, which is JSON if it begins with a brace or a bracket.
        case body(String)
        /// The content is replaced by text whose placeholders are filled in for the request.
        case page(FilledContent, type: FieldLine)
        /// The client is redirected to a URI whose placeholders are filled in for the request.
        case redirectTo(Template)
        /// The client is redirected: with 302 for GET and HEAD, otherwise with 303, so that content is not sent twice.
        case redirect(FieldLine)
        /// The closure is called, and can log the user out, for example. For chains that are made in code.
        case tell(@Sendable (Event) -> Void)
        /// The credential's tokens are discarded: the next request obtains a new one, as after a start.
        case clear(Credential)
    }

    /// A 401 response, as it is passed to the closure.
    public struct Event: Sendable {
        /// The status of the response.
        public let status: HttpStatus
        /// The method of the request.
        public let method: HttpMethod
        /// The path of the request.
        public let path: String
        /// The origin server's challenges, as in `WWW-Authenticate`.
        public let challenges: [String]
        /// Why there is no token any more, if a login has ended; `nil` if only the origin server answered 401.
        public let reason: String?
    }

    /// The statuses of the responses that are handled.
    public var statuses: StatusSet
    /// The action on them.
    public var action: Action

    public var credential: Credential? { if case .clear(let credential) = action { credential } else { nil } }
    public var credentialUse: CredentialUse { .clears }
    public var responseStatuses: StatusSet { statuses }

    public init(statuses: StatusSet = [401], _ action: Action = .passthrough) {
        self.statuses = statuses
        self.action = action
    }

    /// Calls a closure: `Unauthorized { event in … }`. It runs on the loop of the exchange, and must not block.
    public init(statuses: StatusSet = [401], tell: @escaping @Sendable (Event) -> Void) {
        self.init(statuses: statuses, .tell(tell))
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard statuses.contains(response.status.code), let request = exchange.request else { return .pass }
        if exchange[NotRepeatable.self] == .isRenewed {
            exchange.note("the login has not ended: there is a new token")
            return .pass
        }
        switch action {
        case .passthrough:
            exchange.note("unauthorized")
            return .pass
        case .body(let text):
            return replace(
                response, with: .text(text), type: text.first == "{" || text.first == "[" ? Self.json : Self.text)
        case .page(let page, let type):
            return replace(response, with: .bytes(page.bytes(request, in: exchange)), type: type)
        case .redirect(let location): return redirect(to: location, request)
        case .redirectTo(let template):
            guard let text = template.location(request, in: exchange),
                let location = try? FieldLine(.location, text)
            else { return .replace(with: .problem(.badRequest, "no redirect target can be made for this request")) }
            return redirect(to: location, request)
        case .tell(let tell):
            exchange.note("unauthorized")
            tell(
                Event(
                    status: response.status, method: request.method, path: request.path,
                    challenges: response.fields.values(of: .wwwAuthenticate),
                    reason: exchange[CredentialProblem.self]?.failure.reason))
            return .pass
        case .clear(let credential):
            exchange.note("credential \(credential.name) cleared")
            return .wait { _, _ in
                await credential.clear()
                return .pass
            }
        }
    }

    private func replace(_ response: HttpResponse, with content: HttpContent, type: FieldLine) -> Answer {
        var other = HttpResponse(response.status, content: content)
        for challenge in response.fields.values(of: .wwwAuthenticate) {
            // A value that was received in a field line is valid in one. A 401 must have a challenge. RFC 9110 §15.5.2.
            try? other.fields.append(.wwwAuthenticate, challenge)
        }
        other.fields.append(type)
        return .replace(with: other)
    }

    private func redirect(to location: FieldLine, _ request: HttpRequest) -> Answer {
        let isRead = request.method == .get || request.method == .head
        var other = HttpResponse(isRead ? .found : .seeOther)
        other.fields.append(location)
        return .replace(with: other)
    }

    private static let json = FieldLine(literal: .contentType, "application/json")
    private static let text = FieldLine(literal: .contentType, "text/plain; charset=utf-8")
}

extension Unauthorized: ConfigurableWare {
    public static let name: WareName = "unauthorized"
    public static let chainPlace: ChainPlace? = .unauthorized
    public static let about = WareAbout(
        "Handles 401 responses: replaces the content, redirects to a login page, or discards the stored token.",
        source: "RFC 9110 §15.5.2",
        example: #"""
            - unauthorized: { action: redirect, location: "https://login.example.com/" }
            - unauthorized: { action: clearCredential, credential: orders-oauth }
            """#,
        details: #"""
            With `body`, the status and its challenges are kept. With `redirect`, GET and HEAD are answered with 302,
            other methods with 303. `clearCredential` discards the tokens, also those in the credential's file: the next
            request obtains a new token, as after a start.

            `body` and `location` may contain placeholders, which get their values from the request as it went upstream.
            If `body` begins with a brace or a bracket, values are escaped for JSON, and a placeholder must be inside a
            string. `{{name}` stands for the text `{name}`. In `location`, values are percent-encoded:
            `"https://login.example.com/?next={request.path}"`. As with `redirect`, no request can choose the host.
            """#,
        otherNames: ["loginRedirect"])

    private enum Word: String, OptionWord {
        case passthrough, body, redirect, clearCredential
    }

    public init(options: inout OptionsReader) {
        self.init()
        var word = Word.passthrough
        var credential: Credential?
        var body: ContentTemplate?
        var location: Template?
        options.read("statuses", into: &statuses, doc: "statuses of the responses to handle")
        options.read(
            "action", into: &word,
            doc: "the fate of such a response: unchanged, new content, a redirect, or the stored token is discarded"
        )
        options.read(
            "credential", into: &credential, of: "credentials",
            doc: "the credential whose tokens are discarded; only for action clearCredential")
        options.read("body", into: &body, doc: "new content of the response; only for action body")
        options.read(
            "location", into: &location, doc: "target of the redirect, such as a login page; only for action redirect")
        for (key, owner) in [("credential", Word.clearCredential), ("body", .body), ("location", .redirect)] {
            options.require(key, with: "action", word, is: owner)
            options.only(key, with: "action", word, is: owner)
        }
        switch word {
        case .passthrough: break
        case .body:
            guard let body else { break }
            let isJson = [UInt8(ascii: "{"), UInt8(ascii: "[")].contains(body.firstByte)
            let type = isJson ? Self.json : Self.text
            if let page = FilledContent(body, type: type.value, at: "body", &options) {
                action = .page(page, type: type)
            } else {
                action = .body(String(decoding: body.fixedText ?? [], as: UTF8.self))
            }
        case .redirect: if let location { setRedirect(location, &options) }
        case .clearCredential: if let credential { action = .clear(credential) }
        }
    }

    private mutating func setRedirect(_ location: Template, _ options: inout OptionsReader) {
        guard let fixed = location.fixedText else {
            if let problem = location.redirectProblem { options.fail(at: "location", problem) }
            action = .redirectTo(location)
            return
        }
        do {
            action = .redirect(try FieldLine(.location, String(decoding: fixed, as: UTF8.self)))
        } catch {
            options.fail(at: "location", "is invalid in a field")
        }
    }
}
