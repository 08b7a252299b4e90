public import Credentials
public import HttpWare

/// Does something about a 401 on its way to the client: other content, a redirect to a login, or a credential forgotten.
///
/// | option       | type                     | default       | allowed |
/// |--------------|--------------------------|---------------|---------|
/// | `statuses`   | set of statuses          | `[401]`       |         |
/// | `action`     | `passthrough`, `body`, `redirect`, `clearCredential` | `passthrough` | |
/// | `credential` | name under `credentials` |               | with `clearCredential` |
/// | `body`       | text with placeholders   |               | with `body` |
/// | `location`   | template                 |               | with `redirect` |
public struct Unauthorized: Postware, CredentialUser {
    /// What is done.
    public enum Action: Sendable {
        /// Nothing but a word in the record.
        case passthrough
        /// The content is replaced: text, or JSON where it looks like that.
        case body(String)
        /// The content is replaced by one that is made for the request.
        case page(FilledContent, type: FieldLine)
        /// The client is sent to a place that is made for the request, as with `redirect`.
        case redirectTo(Template)
        /// The client is sent to another place: 302 for GET and HEAD, else 303, so that nothing is sent there twice.
        case redirect(FieldLine)
        /// The program is told, and does what it does: logs the user out, say. For chains that are made in code.
        case tell(@Sendable (Event) -> Void)
        /// The credential's tokens are forgotten: the next request asks for one as after a start.
        case clear(Credential)
    }

    /// What a program is told of a refused request.
    public struct Event: Sendable {
        public let status: HttpStatus
        /// What was asked for.
        public let method: HttpMethod
        public let path: String
        /// The origin server's challenges, as in `WWW-Authenticate`.
        public let challenges: [String]
    }

    public var statuses: StatusSet
    public var action: Action

    public var credential: Credential? { if case .clear(let credential) = action { credential } else { nil } }
    public var credentialUse: CredentialUse { .clears }
    public var responseStatuses: StatusSet { statuses }

    public init(statuses: StatusSet = [401], _ action: Action = .passthrough) {
        self.statuses = statuses
        self.action = action
    }

    /// Tells the program: `Unauthorized { event in … }`. On the loop of the exchange, so it must not block.
    public init(statuses: StatusSet = [401], tell: @escaping @Sendable (Event) -> Void) {
        self.init(statuses: statuses, .tell(tell))
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard statuses.contains(response.status.code) else { return .pass }
        switch action {
        case .passthrough:
            exchange.note("unauthorized")
            return .pass
        case .body(let text):
            return replace(
                response, with: .text(text), type: text.first == "{" || text.first == "[" ? Self.json : Self.text)
        case .page(let page, let type):
            return replace(response, with: .bytes(page.bytes(exchange.request, in: exchange)), type: type)
        case .redirect(let location): return redirect(to: location, exchange)
        case .redirectTo(let template):
            guard let text = template.location(exchange.request, in: exchange),
                let location = try? FieldLine(.location, text)
            else { return .replace(with: .problem(.badRequest, "there is no URI to redirect this request to")) }
            return redirect(to: location, exchange)
        case .tell(let tell):
            exchange.note("unauthorized")
            tell(
                Event(
                    status: response.status, method: exchange.request.method, path: exchange.request.path,
                    challenges: response.fields.values(of: .wwwAuthenticate)))
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
            // It came in a field line, so it can go out in one. RFC 9110 §15.5.2: a 401 has a challenge.
            try? other.fields.append(.wwwAuthenticate, challenge)
        }
        other.fields.append(type)
        return .replace(with: other)
    }

    private func redirect(to location: FieldLine, _ exchange: Exchange) -> Answer {
        let isRead = exchange.request.method == .get || exchange.request.method == .head
        var other = HttpResponse(isRead ? .found : .seeOther)
        other.fields.append(location)
        return .replace(with: other)
    }

    private static let json = FieldLine(literal: .contentType, "application/json")
    private static let text = FieldLine(literal: .contentType, "text/plain; charset=utf-8")
}

extension Unauthorized: ConfigurableWare {
    public static let name: WareName = "unauthorized"
    public static let about = WareAbout(
        "Does something about a 401 on its way to the client: other content, a redirect to a login, a credential forgotten.",
        source: "RFC 9110 §15.5.2",
        example: #"""
            - unauthorized: { action: redirect, location: "https://login.example.com/" }
            - unauthorized: { action: clearCredential, credential: orders-oauth }
            """#,
        details: #"""
            With `body` the status and its challenges stay. With `redirect` GET and HEAD are answered 302, other methods 303.
            `clearCredential` forgets the tokens, the file's too: the next request asks for one as after a start.

            `body` and `location` may hold placeholders, of the request as it went upstream. In a `body` that begins with a brace or a bracket, values are
            escaped for JSON, and a placeholder stands inside a string. `{{name}` is the text `{name}`. In `location` values are percent-encoded:
            `"https://login.example.com/?next={request.path}"`. No request can choose the host, as with `redirect`.
            """#)

    private enum Word: String, OptionWord {
        case passthrough, body, redirect, clearCredential
    }

    public init(options: inout OptionsReader) {
        self.init()
        var word = Word.passthrough
        var credential: Credential?
        var body: ContentTemplate?
        var location: Template?
        options.read("statuses", into: &statuses, doc: "of responses that it is about")
        options.read("action", into: &word, doc: "what is done")
        options.read("credential", into: &credential, of: "credentials", doc: "what clearCredential forgets")
        options.read("body", into: &body, doc: "what body puts in place of the content")
        options.read("location", into: &location, doc: "where redirect leads to")
        for (key, owner) in [("credential", Word.clearCredential), ("body", .body), ("location", .redirect)] {
            if word == owner {
                if !options.isGiven(key) { options.fail(at: "action", "\(owner.rawValue) needs \(key)") }
            } else if options.isGiven(key) {
                options.fail(at: key, "belongs to action \(owner.rawValue)")
            }
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
            options.fail(at: "location", "cannot stand in a field")
        }
    }
}
