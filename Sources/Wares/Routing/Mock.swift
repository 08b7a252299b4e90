public import HttpWare
import Synchronization

/// Answers by itself; nothing goes upstream.
///
/// The content is `body`, a `file` that is read when the configuration is loaded, or `json`. `sequence` lists several responses:
/// each request takes the next, the last one stays. Header values, `body` and texts in `json` may hold placeholders.
///
/// | option     | type                           | default | allowed |
/// |------------|--------------------------------|---------|---------|
/// | `status`   | status                         | `200`   | 200 … 599 |
/// | `headers`  | map of field name to template  | `{}`    | no framing fields |
/// | `body`     | text with placeholders         | none    | one of body, file, json |
/// | `file`     | path                           | none    | at most 16MiB |
/// | `json`     | any                            | none    |         |
/// | `delay`    | duration                       | none    | up to 1h |
/// | `sequence` | list of these options          | `[]`    | alone   |
public struct Mock: Middleware {
    /// One response.
    public struct Reply: Sendable {
        public var status = HttpStatus.ok
        public var headers = FieldEdits()
        public var content: [UInt8] = []
        /// Stands in place of `content` where that holds placeholders.
        public var filled: FilledContent?
        /// Waited for before the response is made.
        public var delay: Duration?

        public init() {}
    }

    /// At least one.
    public let replies: [Reply]
    private let turn = Turn()

    /// The place in the sequence.
    public var holdsState: Bool { replies.count > 1 }

    /// Answers with these in turn, the last one again and again.
    public init(_ first: Reply, _ others: Reply...) { replies = [first] + others }

    /// Answers with this: `Mock(json: #"{"id":1}"#)`. Text goes as `text/plain`.
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
        guard let delay = reply.delay else { return Mock.answer(reply, request, exchange) }
        return .wait { request, exchange in
            try await exchange.sleep(for: delay)
            return Mock.answer(reply, request, exchange)
        }
    }

    private static func answer(_ reply: Reply, _ request: HttpRequest, _ exchange: Exchange) -> Verdict {
        var draft = Draft(request: request, fields: HttpFields())
        do throws(InvalidFieldValue) {
            try reply.headers.apply(to: &draft, in: exchange)
        } catch {
            return .abort(with: .problem(.badRequest, "\(error)"))
        }
        let content = reply.filled?.bytes(request, in: exchange) ?? reply.content
        return .abort(with: HttpResponse(reply.status, fields: draft.fields, content: .bytes(content)))
    }

    /// The fields of a response while `exchange.request` is still with the middlewares.
    private struct Draft: EditedMessage {
        let request: HttpRequest
        var fields: HttpFields

        func text(_ template: Template, in exchange: Exchange) -> String { request.text(template, in: exchange) }
    }

    /// Whose turn it is, for all loops together.
    private final class Turn: Sendable {
        private let count = Atomic(0)

        /// 0, 1, 2 … and then the last for ever.
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
    /// All that it answers is 401 or 403: it stands there to keep clients off.
    public var restrictsAccess: Bool { replies.allSatisfy { [401, 403].contains($0.status.code) } }
}

extension Mock: ConfigurableWare {
    public static let name: WareName = "mock"
    public static let about = WareAbout(
        "Answers by itself; nothing goes upstream.", source: "mitmproxy, APISIX",
        example: #"""
            - mock: { body: "hello\n", headers: { Content-Type: text/plain } }
              if: { path: /hello }
            - mock:
                sequence: # each request takes the next, the last one stays
                  - { status: 503, delay: 100ms }
                  - { json: { ready: true } }
            """#,
        details: #"""
            Without a `Content-Type` of its own the response gets that of its content: plain text, JSON, or what the file's name tells.
            A relative `file` is relative to the file that writes it. In JSON, unquoted numbers, `true`, `false` and `null` are what they
            are; anything else is a string.

            Placeholders in `body`, and in the texts of `json`, are filled in; a `file` is sent as it is. Their values are escaped by the `Content-Type`: for
            HTML and XML, or for JSON, where a placeholder stands inside a string. With any other type but plain text, CSV and Markdown they are an error.
            `{{name}` is the text `{name}`; other braces stand for themselves.
            """#)

    public init(options: inout OptionsReader) {
        var replies: [Reply] = []
        let single = Reply(options: &options)
        options.readEach(
            "sequence",
            doc: "maps of the options above, which then stand there: each request takes the next, the last one stays"
        ) { options in
            replies.append(Reply(options: &options))
        }
        if options.isGiven("sequence") {
            if replies.isEmpty { options.fail(at: "sequence", "lists no response") }
            for key in Reply.keys where options.isGiven(key) {
                options.fail(at: key, "cannot stand beside sequence; write it in the members")
            }
        }
        self.replies = replies.isEmpty ? [single] : replies
    }
}

extension Mock.Reply {
    fileprivate static let keys = ["status", "headers", "body", "file", "json", "delay"]

    fileprivate init(options: inout OptionsReader) {
        self.init()
        var fields: OptionMap<FieldName, Template> = [:]
        var body: ContentTemplate?
        var file: FilePath?
        options.read("status", into: &status, in: HttpStatus.finals, doc: "of the response")
        options.read("headers", into: &fields, doc: "the response's fields; no framing fields, no Host")
        options.read("body", into: &body, doc: "the content; one of body, file, json")
        options.read(
            "file", into: &file,
            doc: "the content, read when the configuration is loaded; one of body, file, json, at most 16MiB")
        let json = options.readNode("json", type: "any", doc: "the content, as JSON; one of body, file, json")
        options.read("delay", into: &delay, in: .zero ... .seconds(3600), doc: "waited for before the response is made")

        let contents = ["body", "file", "json"].filter { options.isGiven($0) }
        for key in contents.dropFirst() { options.fail(at: key, "cannot stand beside \(contents[0])") }
        if status.neverHasContent || status == .resetContent, let key = contents.first {
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
            content = FileContent.read(file.path, "file", &options) ?? []
            mediaType = FileContent.mediaType(ofName: file.path) ?? "application/octet-stream"
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
