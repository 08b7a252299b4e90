public import Credentials
public import HttpWare

/// Does something about a 401 on its way to the client: other content, a redirect to a login, or a credential forgotten.
///
/// | option       | type                     | default       | allowed |
/// |--------------|--------------------------|---------------|---------|
/// | `statuses`   | set of statuses          | `[401]`       |         |
/// | `action`     | `passthrough`, `body`, `redirect`, `clearCredential` | `passthrough` | |
/// | `credential` | name under `credentials` |               | with `clearCredential` |
/// | `body`       | text                     |               | with `body` |
/// | `location`   | text                     |               | with `redirect` |
public struct Unauthorized: Postware, CredentialUser {
    /// What is done.
    public enum Action: Sendable {
        /// Nothing but a word in the record.
        case passthrough
        /// The content is replaced: text, or JSON where it looks like that.
        case body(String)
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
            var other = HttpResponse(response.status, content: .text(text))
            for challenge in response.fields.values(of: .wwwAuthenticate) {
                // It came in a field line, so it can go out in one. RFC 9110 §15.5.2: a 401 has a challenge.
                try? other.fields.append(.wwwAuthenticate, challenge)
            }
            other.fields.append(text.first == "{" || text.first == "[" ? Self.json : Self.text)
            return .replace(with: other)
        case .redirect(let location):
            let isRead = exchange.request.method == .get || exchange.request.method == .head
            var other = HttpResponse(isRead ? .found : .seeOther)
            other.fields.append(location)
            return .replace(with: other)
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
            """#)

    private enum Word: String, OptionWord {
        case passthrough, body, redirect, clearCredential
    }

    public init(options: inout OptionsReader) {
        self.init()
        var word = Word.passthrough
        var credential: Credential?
        var body: String?
        var location: String?
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
        case .body: action = .body(body ?? "")
        case .redirect:
            do {
                action = .redirect(try FieldLine(.location, location ?? ""))
            } catch {
                options.fail(at: "location", "cannot stand in a field")
            }
        case .clearCredential: if let credential { action = .clear(credential) }
        }
    }
}
