public import HttpWare

/// The expected results of a step. Only written ones are compared.
public struct CaseExpectation: Sendable {
    /// The requests that go upstream, in order; `nil` if not written. Empty: nothing goes upstream.
    public var upstream: [ExpectedMessage]?
    /// The place of `upstream`.
    public var upstreamLocation = SourceLocation.code
    /// The response to the client; `nil` if not written.
    public var response: ExpectedMessage?
    /// The decisions of wares, by label, else by name.
    public var wares: [ExpectedWare] = []
    /// The side calls, in order; `nil` if not written.
    public var calls: [ExpectedMessage]?
    /// The place of `calls`.
    public var callsLocation = SourceLocation.code

    init() {}

    mutating func read(_ options: inout OptionsReader) {
        upstream = CaseExpectation.messages("upstream", .request, &options)
        upstreamLocation = options.location(of: "upstream")
        var response = ExpectedMessage(at: options.location(of: "response"))
        let isGiven = options.isGiven("response")
        options.read("response", doc: "the response to the client") { response.read(.response, &$0) }
        if isGiven { self.response = response }
        wares = CaseExpectation.wares(&options)
        calls = CaseExpectation.messages("calls", .call, &options)
        callsLocation = options.location(of: "calls")
    }

    private static func wares(_ options: inout OptionsReader) -> [ExpectedWare] {
        let doc = "by label or name: a decision that the ware took, a list of all of them, or none if it does not run"
        guard let node = options.readNode("wares", type: "map of text to text", doc: doc) else { return [] }
        guard let entries = node.entries else {
            options.fail(at: "wares", "\(node.shown) is not a map; write ware: decision")
            return []
        }
        return entries.map { entry in
            let words = entry.value.members.compactMap(\.text)
            if words.isEmpty || words.count != entry.value.members.count {
                options.fail(
                    at: "wares", in: entry.value.location,
                    "\(entry.value.shown) is not a decision; write \(entry.key): pass, or a list of decisions")
            }
            return ExpectedWare(
                name: entry.key, words: words, isList: entry.value.text == nil, location: entry.value.location)
        }
    }

    /// The word that stands for no message at all.
    private enum NoMessage: String, OptionWord {
        case none
    }

    private static func messages(
        _ key: String, _ kind: ExpectedMessage.Kind, _ options: inout OptionsReader
    ) -> [ExpectedMessage]? {
        var messages: [ExpectedMessage] = []
        var isNone = false
        let doc =
            kind == .call ? "the side calls, in order, or none" : "the requests that go upstream, in order, or none"
        options.readEach(key, orText: "is", doc: doc) { options in
            var word: NoMessage?
            options.read("is", into: &word, doc: "none: nothing is sent")
            if word != nil { isNone = true }
            var message = ExpectedMessage(at: options.location)
            message.read(kind, &options)
            if word == nil { messages.append(message) }
        }
        if isNone, !messages.isEmpty { options.fail(at: key, "lists none beside messages") }
        return options.isGiven(key) ? messages : nil
    }
}

/// The expected decisions of a ware.
public struct ExpectedWare: Sendable, Equatable {
    /// The label, else the name.
    public var name: String
    /// The words for its decisions, as in records.
    public var words: [String]
    /// Whether these are all its decisions, in order.
    public var isList: Bool
    /// The place of the words.
    public var location: SourceLocation
}

/// The expected parts of a message.
public struct ExpectedMessage: Sendable {
    /// The kinds of messages, which have different parts.
    enum Kind {
        case request, call, response
    }

    /// An expected field: by its value, or by whether it is there.
    public struct Field: Sendable {
        public var name: FieldName
        public var value: ExpectedText
        public var location: SourceLocation
    }

    /// The place of the message.
    public var location: SourceLocation
    public var service: Located<String>?
    public var url: Located<String>?
    public var method: Located<HttpMethod>?
    /// With a `?`, the path and the query; otherwise only the path.
    public var path: Located<String>?
    public var status: Located<HttpStatus>?
    public var fields: [Field] = []
    public var trailers: [Field] = []
    /// Whether the connection ends before the response is complete.
    public var isCut = false
    /// The whole content, as text.
    public var text: Located<String>?
    /// Texts that are in the content.
    public var contains: [Located<String>] = []
    /// A pattern that matches within the content.
    public var matches: Located<Pattern>?
    /// The content as JSON.
    public var json: Located<JsonValue>?
    /// JSON whose members the content has, too.
    public var jsonPart: Located<JsonValue>?

    init(at location: SourceLocation) { self.location = location }

    mutating func read(_ kind: Kind, _ options: inout OptionsReader) {
        switch kind {
        case .response:
            options.read("status", into: &status, doc: "the status")
            options.read("cut", into: &isCut, doc: "the connection ends before the response is complete")
        case .call, .request:
            if kind == .call { options.read("url", into: &url, doc: "the absolute URL of a call to a URL") }
            options.read("service", into: &service, doc: "the service that gets the request")
            options.read("method", into: &method, doc: "the method")
            options.read("path", into: &path, doc: "the path as sent; with ? also the query")
        }
        fields = ExpectedMessage.fields("headers", &options)
        if kind != .call { trailers = ExpectedMessage.fields("trailers", &options) }
        options.read("text", into: &text, doc: "the whole content as text")
        options.read("contains", into: &contains, doc: "texts that are in the content")
        options.read("matches", into: &matches, doc: "a pattern that matches within the content")
        json = ExpectedMessage.json("json", &options, doc: "the content as JSON, compared by values")
        jsonPart = ExpectedMessage.json("jsonPart", &options, doc: "JSON whose members the content has, too")
        CaseContent.refuseSeveral(["text", "json", "jsonPart"], &options)
        guard kind == .response else { return }
        options.useless(
            "status", "headers", "trailers", "text", "contains", "matches", "json", "jsonPart", with: "cut", isCut,
            is: true, hint: "a part of a response is not compared")
    }

    private static func json(_ key: String, _ options: inout OptionsReader, doc: String) -> Located<JsonValue>? {
        guard let node = options.readNode(key, type: "any value", doc: doc) else { return nil }
        do throws(JsonFault) {
            return Located(try JsonValue(node.jsonValue.bytes, rules: .exact), at: node.location)
        } catch {
            options.fail(at: key, "is not JSON: \(error)")
            return nil
        }
    }

    private static func fields(_ key: String, _ options: inout OptionsReader) -> [Field] {
        let doc =
            "names and values: a text, present, absent, { matches: PATTERN }, { contains: TEXT }, or a list of lines"
        guard let node = options.readNode(key, type: "map of field name to value", doc: doc) else { return [] }
        guard let entries = node.entries else {
            options.fail(at: key, "\(node.shown) is not a map; write Name: value")
            return []
        }
        var fields: [Field] = []
        for entry in entries {
            guard let name = FieldName(entry.key) else {
                options.fail(at: key, in: entry.location, "\(entry.key.quotedForErrors) is not a field name")
                continue
            }
            do throws(OptionMistake) {
                fields.append(Field(name: name, value: try ExpectedText(entry.value), location: entry.value.location))
            } catch {
                options.fail(
                    at: key, in: entry.value.location, (error.problem.map { $0 + "; " } ?? "") + error.hint)
            }
        }
        return fields
    }
}

/// The expected value of a field.
public indirect enum ExpectedText: Sendable {
    case exactly(String)
    case present, absent
    case contains(String)
    case matches(Pattern)
    /// The values of the lines, in order.
    case lines([ExpectedText])

    private static let keys = ["matches", "contains", "is"]

    /// Reads a text, a map with one key, or a list.
    init(_ node: ConfigNode) throws(OptionMistake) {
        switch node.content {
        case .scalar("present", isQuoted: false): self = .present
        case .scalar("absent", isQuoted: false): self = .absent
        case .scalar(let text, _): self = .exactly(text)
        case .list(let members):
            var texts: [ExpectedText] = []
            for member in members {
                let text = try ExpectedText(member)
                if case .lines = text { throw OptionMistake("write a text", problem: "a list of lines has no lists") }
                texts.append(text)
            }
            self = .lines(texts)
        case .map(let entries):
            guard entries.count == 1, let entry = entries.first else {
                throw OptionMistake("write one of \(ExpectedText.keys.joined(separator: ", "))")
            }
            guard let text = entry.value.text else {
                throw OptionMistake("write \(entry.key): TEXT", problem: "\(entry.value.shown) is not a text")
            }
            switch entry.key {
            case "matches": self = .matches(try Pattern(text))
            case "contains": self = .contains(text)
            case "is": self = .exactly(text)
            default:
                throw OptionMistake(
                    "write \(ExpectedText.keys.joined(separator: " or "))"
                        + didYouMean(entry.key, among: ExpectedText.keys),
                    problem: "\(entry.key.quotedForErrors) is not a comparison")
            }
        }
    }
}
