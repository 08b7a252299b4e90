public import HttpWare
import Synchronization

/// Answers with a fixed response or a sequence of responses; nothing goes upstream.
public struct Mock: Middleware {
    /// One response.
    public struct Reply: Sendable {
        /// The status of the response.
        public var status = HttpStatus.ok
        /// The header fields of the response.
        public var headers = FieldEdits()
        /// The content of the response.
        public var content: [UInt8] = []
        /// The content with placeholders; used in place of `content`.
        public var filled: FilledContent?
        /// The delay before the response is made.
        public var delay: Duration?

        public init() {}
    }

    /// The responses, in order; at least one.
    public let replies: [Reply]
    private let turn = Turn()

    /// Whether the ware remembers its position in the sequence.
    public var holdsState: Bool { replies.count > 1 }

    /// Answers with these responses in turn; the last one repeats.
    public init(_ first: Reply, _ others: Reply...) { replies = [first] + others }

    /// Answers with this content: `Mock(json: #"{"id":1}"#)`. Text has the type `text/plain`.
    public init(_ status: HttpStatus = .ok, json: String? = nil, text: String? = nil, delay: Duration? = nil) {
        var reply = Reply()
        reply.status = status
        reply.delay = delay
        if let json {
            reply.headers = FieldEdits(set: ["Content-Type": "application/json"])
            reply.content = Array(json.utf8)
        } else if let text {
            reply.headers = FieldEdits(set: ["Content-Type": "text/plain; charset=utf-8"])
            reply.content = Array(text.utf8)
        }
        self.init(reply)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let reply = replies.count == 1 ? replies[0] : replies[turn.next(below: replies.count)]
        guard let delay = reply.delay else { return Mock.makeVerdict(reply, request, exchange) }
        return .wait { request, exchange in
            try await exchange.sleep(for: delay)
            return Mock.makeVerdict(reply, request, exchange)
        }
    }

    private static func makeVerdict(_ reply: Reply, _ request: HttpRequest, _ exchange: Exchange) -> Verdict {
        var draft = Draft(request: request, fields: HttpFields())
        do throws(InvalidFieldValue) {
            try reply.headers.apply(to: &draft, in: exchange)
        } catch {
            return .abort(with: .problem(.badRequest, "\(error)"))
        }
        let content = reply.filled?.bytes(request, in: exchange) ?? reply.content
        return .abort(with: HttpResponse(reply.status, fields: draft.fields, content: .bytes(content)))
    }

    /// A response that is being made: its fields get their values from the request.
    private struct Draft: EditedMessage {
        let request: HttpRequest
        var fields: HttpFields

        func text(_ template: Template, in exchange: Exchange) -> String { request.text(template, in: exchange) }
    }

    /// The position in the sequence, shared by all loops.
    private final class Turn: Sendable {
        private let count = Atomic(0)

        /// The next index: 0, 1, 2 …, and from then on always the last one.
        func next(below limit: Int) -> Int {
            while true {
                let now = count.load(ordering: .relaxed)
                if now >= limit - 1 { return limit - 1 }
                if count.compareExchange(expected: now, desired: now + 1, ordering: .relaxed).exchanged { return now }
            }
        }
    }
}

extension Mock: AccessRule {
    public static var isAccessControl: Bool { false }
    /// True if every response is 401 or 403: the purpose of the ware is then to refuse clients.
    public var restrictsAccess: Bool { replies.allSatisfy { [401, 403].contains($0.status.code) } }
}

extension Mock: AnsweringWare {}

extension Mock: ConfigurableWare {
    public static let name: WareName = "mock"
    public static let about = WareAbout(
        "Answers with a fixed response or a sequence of responses; nothing goes upstream.", source: "mitmproxy, APISIX",
        example: #"""
            - mock: { body: "hello\n", headers: { Content-Type: text/plain } }
              if: { path: /hello }
            - mock:
                sequence: # each request takes the next, the last one stays
                  - { status: 503, delay: 100ms }
                  - { json: { ready: true } }
            """#,
        details: #"""
            Without a `Content-Type` in `headers`, the type follows from the content: plain text for `body`, JSON for
            `json`, and the file's extension for `file`. A relative `file` is relative to the configuration file that
            contains it. In `json`, unquoted numbers, `true`, `false` and `null` keep their type; all other scalars are
            strings.

            Placeholders in `body` and in texts of `json` are filled in; a `file` is sent unchanged. Values are escaped
            according to the `Content-Type`: for HTML and XML, or for JSON, where a placeholder must be inside a string.
            With any other type but plain text, CSV and Markdown, placeholders are an error. `{{name}` stands for the
            text `{name}`; other braces stand for themselves.
            """#,
        otherNames: ["respond", "directResponse", "return"])

    public init(options: inout OptionsReader) {
        var replies: [Reply] = []
        let single = Reply(options: &options)
        options.readEach(
            "sequence",
            doc:
                "responses with the options status, headers, body, file, json and delay; each request gets the next, the last repeats"
        ) { options in
            replies.append(Reply(options: &options))
        }
        options.refuseEmpty("sequence", "list at least one response")
        options.useless(
            "status", "headers", "body", "file", "json", "delay", with: "sequence", hint: "write it in its members")
        self.replies = replies.isEmpty ? [single] : replies
    }
}

extension Mock.Reply {
    fileprivate init(options: inout OptionsReader) {
        self.init()
        var fields: OptionMap<FieldName, Template> = [:]
        var body: ContentTemplate?
        var file: FilePath?
        options.read("status", into: &status, in: HttpStatus.finals, doc: "status of the response")
        options.read(
            "headers", into: &fields,
            doc: "header fields of the response; not for Host or framing fields such as Content-Length")
        options.read("body", into: &body, doc: "content of the response; only one of body, file and json")
        options.read(
            "file", into: &file,
            doc:
                "file with the content, read when the configuration is loaded; at most 16MiB; only one of body, file and json"
        )
        let json = options.readNode(
            "json", type: "any",
            doc: "content of the response, written as YAML and sent as JSON; only one of body, file and json")
        options.read("delay", into: &delay, in: .zero ... .seconds(3600), doc: "delay before the response is sent")

        options.exclusive("body", "file", "json")
        if status.neverHasContent || status == .resetContent,
            let key = ["body", "file", "json"].first(where: options.isGiven)
        {
            options.fail(at: key, "a response with status \(status) has no content")
        }
        var mediaType: StaticString = "text/plain; charset=utf-8"
        var text: (content: ContentTemplate, key: String)?
        if let json {
            content = Array(json.json.utf8)
            mediaType = "application/json"
            do {
                text = (try ContentTemplate(optionText: json.json), "json")
            } catch {
                options.fail(at: "json", error.problem.map { "\($0); \(error.hint)" } ?? error.hint)
            }
        } else if let file {
            content = LoadedFile.read(file.path, "file", &options) ?? []
            mediaType = LoadedFile.mediaType(ofName: file.path) ?? "application/octet-stream"
        } else if let body {
            content = body.fixedText ?? []
            text = (body, "body")
        }
        if let text, text.content.fixedText == nil {
            let written = fields.first { $0.key == .contentType }?.value
            let type = written.map { $0.fixedText.map { String(decoding: $0, as: UTF8.self) } ?? $0.source }
            filled = FilledContent(text.content, type: type ?? "\(mediaType)", at: text.key, &options)
        }
        if filled != nil || !content.isEmpty, !fields.contains(where: { $0.key == .contentType }) {
            fields.entries.append(.init(key: .contentType, value: Template(stringLiteral: "\(mediaType)")))
        }
        headers = FieldEdits(options: &options, setting: fields, at: "headers")
    }
}
