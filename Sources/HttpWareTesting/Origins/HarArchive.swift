import FoundationEssentials
public import HttpWare

/// Requests and their responses, as recorded by browsers and proxies: HAR 1.2. Reads the messages in an archive and
/// ignores its other parts. By default it writes no credentials.
public struct HarArchive: Sendable {
    /// One request with its response, both complete.
    public struct Entry: Sendable {
        public var request: HttpRequest
        public var response: HttpResponse

        public init(request: HttpRequest, response: HttpResponse) {
            self.request = request
            self.response = response
        }
    }

    /// The entries in the order of their requests.
    public var entries: [Entry]

    public init(_ entries: [Entry] = []) { self.entries = entries }

    /// Reads an archive. Throws if it is not JSON of that form, or if an entry is not a message.
    public init(json: [UInt8]) throws {
        entries = try JSONDecoder().decode(Har.self, from: Data(json)).log.entries.map { entry in
            let request = try HttpRequest(
                try HarArchive.method(entry.request.method), entry.request.url,
                fields: try HarArchive.fields(entry.request.headers),
                content: .text(entry.request.postData?.text ?? ""))
            guard let status = HttpStatus(entry.response.status) else {
                throw HarFault("\(entry.response.status) is not a status")
            }
            return Entry(
                request: request,
                response: HttpResponse(
                    status, fields: try HarArchive.fields(entry.response.headers),
                    content: .bytes(try entry.response.content.bytes())))
        }
    }

    /// Reads a file.
    public init(path: String) throws { try self.init(json: Array(Data(contentsOf: URL(filePath: path)))) }

    /// Writes the archive. Values of fields that carry credentials are `…` unless `hidesCredentials` is false.
    public func json(hidesCredentials: Bool = true) throws -> [UInt8] {
        let har = Har(
            log: .init(
                entries: entries.map { entry in
                    Har.Entry(
                        request: .init(
                            method: entry.request.method.name, url: entry.request.receivedTarget,
                            headers: HarArchive.lines(entry.request.fields, hidesCredentials),
                            postData: entry.request.content.bytes.map {
                                .init(
                                    mimeType: entry.request.fields[.contentType] ?? "",
                                    text: String(decoding: $0, as: UTF8.self))
                            }),
                        response: .init(
                            status: entry.response.status.code, statusText: entry.response.status.reasonPhrase,
                            headers: HarArchive.lines(entry.response.fields, hidesCredentials),
                            content: .init(entry.response)))
                }))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(har))
    }

    private static func method(_ text: String) throws -> HttpMethod {
        guard let method = HttpMethod(text) else { throw HarFault("\(text.debugDescription) is not a method") }
        return method
    }

    /// The fields of a message. Fields of one connection, which the recorder saw but a message does not have, are left
    /// out, and so are the pseudo-fields that browsers write for HTTP/2.
    private static func fields(_ lines: [Har.Line]) throws -> HttpFields {
        var fields = HttpFields()
        for line in lines where !line.name.hasPrefix(":") {
            guard let name = FieldName(line.name) else {
                throw HarFault("\(line.name.debugDescription) is not a field")
            }
            if !name.isGatewayOwned, name != .contentEncoding { try fields.append(name, line.value) }
        }
        return fields
    }

    private static func lines(_ fields: HttpFields, _ hidesCredentials: Bool) -> [Har.Line] {
        fields.map { name, value in
            let isHidden = hidesCredentials && FieldName(name).map(Redaction.fields.contains) ?? false
            return Har.Line(name: name, value: isHidden ? Redaction.mark : value)
        }
    }
}

/// An entry of an archive that is not a message.
public struct HarFault: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}

/// The members of the format that describe messages. HAR 1.2.
private struct Har: Codable {
    struct Log: Codable {
        var version = "1.2"
        var creator = Creator()
        var entries: [Entry]

        init(entries: [Entry]) { self.entries = entries }
        init(from decoder: any Decoder) throws {
            entries = try decoder.container(keyedBy: CodingKeys.self).decode([Entry].self, forKey: .entries)
        }
    }

    struct Creator: Codable {
        var name = "httpware"
        var version = "1"
    }

    struct Entry: Codable {
        var startedDateTime = "1970-01-01T00:00:00.000Z"
        var time = 0
        var request: Request
        var response: Response
        var cache: [String: String] = [:]
        var timings = ["send": 0, "wait": 0, "receive": 0]

        init(request: Request, response: Response) {
            self.request = request
            self.response = response
        }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            request = try container.decode(Request.self, forKey: .request)
            response = try container.decode(Response.self, forKey: .response)
        }
    }

    struct Line: Codable {
        var name: String
        var value: String
    }

    struct Request: Codable {
        var method: String
        var url: String
        var httpVersion: String? = "HTTP/1.1"
        var headers: [Line]
        var postData: PostData?
    }

    struct PostData: Codable {
        var mimeType: String?
        var text: String?
    }

    struct Response: Codable {
        var status: Int
        var statusText: String?
        var httpVersion: String? = "HTTP/1.1"
        var headers: [Line]
        var content: Content
    }

    struct Content: Codable {
        var size: Int?
        var mimeType: String?
        var text: String?
        var encoding: String?

        init(_ response: HttpResponse) {
            let bytes = response.content.bytes ?? []
            size = bytes.count
            mimeType = response.fields[.contentType] ?? ""
            if let text = String(validating: bytes, as: UTF8.self) {
                self.text = text
            } else {
                text = Data(bytes).base64EncodedString()
                encoding = "base64"
            }
        }

        func bytes() throws -> [UInt8] {
            guard let text else { return [] }
            guard encoding == "base64" else { return Array(text.utf8) }
            guard let data = Data(base64Encoded: text) else { throw HarFault("the content is not base64") }
            return Array(data)
        }
    }

    var log: Log
}
