public import HttpWare

/// The content of a message in a case.
public struct CaseContent: Sendable, Equatable {
    /// The bytes; `nil` if no content is written.
    public var bytes: [UInt8]?
    /// Whether it was written as JSON, which then is the default of `Content-Type`.
    public var isJson = false

    static let keys = ["text", "json", "base64"]

    init() {}

    /// Reads one of `text`, `json` and `base64`.
    init(options: inout OptionsReader) {
        var text: String?
        options.read("text", into: &text, doc: "content as text")
        let json = options.readNode("json", type: "any value", doc: "content as JSON, written as YAML")
        var base64: String?
        options.read("base64", into: &base64, doc: "content as base64")
        CaseContent.refuseSeveral(CaseContent.keys, &options)
        if let text { bytes = Array(text.utf8) }
        if let json {
            bytes = json.jsonValue.bytes
            isJson = true
        }
        if let base64 {
            // Lines may be broken, for people.
            let digits = base64.filter { !$0.isWhitespace }
            bytes = Base64.decode(digits.utf8)
            if bytes == nil { options.fail(at: "base64", "is not base64 with padding") }
        }
    }

    /// Reports that more than one of the keys is written.
    static func refuseSeveral(_ keys: [String], _ options: inout OptionsReader) {
        let given = keys.filter { options.isGiven($0) }
        if given.count > 1 {
            options.fail(at: given[1], "is written beside \(given[0]); write one of them")
        }
    }
}

/// The field lines of a message in a case, in order.
public struct CaseFields: Sendable, Equatable {
    /// A line.
    public struct Line: Sendable, Equatable {
        public var name: FieldName
        public var value: String
    }

    public var lines: [Line] = []

    /// Reads a map of names to a value, or to a list of values for several lines.
    static func read(_ key: String, _ options: inout OptionsReader, doc: String) -> CaseFields {
        var map = OptionMap<FieldName, [String]>()
        options.read(key, into: &map, doc: doc)
        var fields = CaseFields()
        for entry in map {
            for value in entry.value {
                if (try? FieldLine(entry.key, value)) == nil {
                    options.fail(
                        at: key, in: entry.location,
                        "\(value.quotedForErrors) is not a field value: it has a control character, or a space at an end"
                    )
                } else {
                    fields.lines.append(Line(name: entry.key, value: value))
                }
            }
        }
        return fields
    }

    /// Whether a line has this name.
    func contains(_ name: FieldName) -> Bool { lines.contains { $0.name == name } }

    /// The lines as fields of a message.
    var fields: HttpFields {
        var fields = HttpFields()
        // Each value was checked when it was read.
        for line in lines { try? fields.append(line.name, line.value) }
        return fields
    }
}

/// The request of a step.
public struct CaseRequest: Sendable {
    /// The place of the request.
    public var location: SourceLocation
    public var method = HttpMethod.get
    /// An absolute URL, or a path.
    public var url = ""
    public var fields = CaseFields()
    public var content = CaseContent()
    /// The fields behind the content.
    public var trailers = CaseFields()
    /// The subject of the client's certificate; `nil` without one.
    public var certificate: String?

    init(location: SourceLocation) { self.location = location }

    mutating func read(_ options: inout OptionsReader) {
        options.read("method", into: &method, doc: "the method")
        options.read("url", into: &url, doc: "an absolute URL, or a path alone")
        options.require("url")
        if options.isGiven("url"), let problem = CaseRequest.problem(of: url) { options.fail(at: "url", problem) }
        if method == .connect {
            options.fail(
                at: "method", "CONNECT opens a tunnel, which a case cannot; write the request inside it, with https://")
        }
        fields = CaseFields.read("headers", &options, doc: "names and values; a list of values makes several lines")
        content = CaseContent(options: &options)
        trailers = CaseFields.read("trailers", &options, doc: "the fields behind the content")
        options.read("certificate", into: &certificate, doc: "the subject of the client's certificate: CN=anna")
        if !trailers.lines.isEmpty, content.bytes == nil {
            options.fail(at: "trailers", "needs content: text, json or base64")
        }
    }

    /// Why the text cannot be the URL of a request; `nil` if it can.
    private static func problem(of url: String) -> String? {
        guard !url.isEmpty, url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            return "\(url.quotedForErrors) is not a URL; write spaces as %20"
        }
        if url.hasPrefix("/") || url == "*" { return nil }
        guard let scheme = Explanation.Question(.get, url).scheme else {
            return "\(url.quotedForErrors) is not a URL; write http://HOST/PATH, https://HOST/PATH or /PATH"
        }
        return ["http", "https"].contains(scheme)
            ? nil : "\(scheme.quotedForErrors) is not a scheme of requests; write http:// or https://"
    }
}

/// The answer of an origin server to a request, or of another server to a side call.
public struct OriginAnswer: Sendable {
    /// The kinds of failures.
    public enum Failure: String, OptionWord {
        /// No connection can be made.
        case connect
        /// There is no response in time.
        case timeout
        /// The connection closes before a response.
        case reset
    }

    /// The place of the answer.
    public var location: SourceLocation
    /// The service that it counts for; `nil` for each.
    public var service: String?
    public var status = HttpStatus.ok
    public var fields = CaseFields()
    public var content = CaseContent()
    /// The fields behind the content.
    public var trailers = CaseFields()
    /// The time until the response comes.
    public var after = Duration.zero
    /// The failure in place of a response; `nil` without one.
    public var fails: Failure?

    /// 200 without content.
    init(at location: SourceLocation) { self.location = location }

    init(options: inout OptionsReader, ofService: Bool) {
        self.init(at: options.location)
        if ofService { options.read("service", into: &service, doc: "counts only for requests to this service") }
        options.read("status", into: &status, doc: "the status")
        if options.isGiven("status"), !(200...599).contains(status.code) {
            options.fail(at: "status", "\(status.code) is not the status of a final response; write 200 to 599")
        }
        fields = CaseFields.read("headers", &options, doc: "names and values; a list of values makes several lines")
        content = CaseContent(options: &options)
        trailers = CaseFields.read("trailers", &options, doc: "the fields behind the content")
        options.read(
            "after", into: &after, in: .zero...CaseStep.longest, doc: "the time until the response comes")
        options.read("fails", into: &fails, doc: "a failure in place of a response")
        if fails != nil {
            for key in ["status", "headers", "text", "json", "base64", "trailers", "after"] where options.isGiven(key) {
                options.fail(at: key, "has no effect beside fails")
            }
        }
    }

    /// The response.
    var response: HttpResponse {
        var response = HttpResponse(status, fields: fields.fields)
        if let bytes = content.bytes {
            response.content = .bytes(bytes)
            if content.isJson, !fields.contains(.contentType) {
                // Cannot throw: the literal is a valid field value.
                try? response.fields.set(.contentType, to: "application/json")
            }
        }
        if !trailers.lines.isEmpty { response.trailers = trailers.fields }
        return response
    }
}

/// The answer to a side call: a call of the gateway's own, to a URL or to a service.
public struct CallAnswer: Sendable {
    /// The place of the entry.
    public var location: SourceLocation
    /// The URL of the call: without `?` for any query, with `*` at its end for all URLs that begin so.
    public var url: String?
    /// The service that a script or another ware calls by its name.
    public var service: String?
    /// The method; `nil` for any.
    public var method: HttpMethod?
    public var answer: OriginAnswer

    init(options: inout OptionsReader) {
        location = options.location
        answer = OriginAnswer(at: location)
        options.read("url", into: &url, doc: "the URL of the call; without ? for any query, * at its end for any rest")
        options.read("service", into: &service, doc: "a service that a ware calls by its name")
        options.requireOne(of: "url", "service")
        options.read("method", into: &method, doc: "the method; default: any")
        var read = answer
        options.read("answer", doc: "the answer; default: 200 without content") {
            read = OriginAnswer(options: &$0, ofService: false)
        }
        answer = read
        if let url, !url.hasPrefix("http://"), !url.hasPrefix("https://") {
            options.fail(at: "url", "\(url.quotedForErrors) is not an absolute URL; write http:// or https:// first")
        }
    }

    /// Whether it answers a call with this method to this URL.
    func answers(_ method: String, _ called: String) -> Bool {
        guard var url, self.method.map({ "\($0)" == method }) ?? true else { return false }
        if url.hasSuffix("*") { return called.hasPrefix(url.dropLast()) }
        // A URL without a path means the path /. RFC 9110 §4.2.3.
        if !url.dropFirst(8).contains("/") { url += "/" }
        return called == url || !url.contains("?") && called.prefix { $0 != "?" } == url
    }
}
