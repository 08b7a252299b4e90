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

    /// Reads an archive. Attempts that failed are left out. Throws if it is not JSON of that
    /// form, or if an entry is not a message.
    public init(json: [UInt8]) throws {
        entries = try JSONDecoder().decode(Har.self, from: Data(json)).log.entries.compactMap { entry in
            guard !entry.hasFailed else { return nil }
            guard let status = HttpStatus(entry.response.status) else {
                throw HarFault("\(entry.response.status) is not a status")
            }
            let method = try HarArchive.method(entry.request.method)
            let content = try entry.request.postData?.bytes() ?? []
            let isSentCoded = HarArchive.isCoded(
                content, entry.request.headers, isBase64: entry.request.postData?.isBase64 == true)
            let request = try HttpRequest(
                method, entry.request.url, fields: try HarArchive.fields(entry.request.headers, isCoded: isSentCoded),
                content: entry.request.postData == nil ? .text("") : .bytes(content))
            let bytes = try entry.response.content.bytes()
            // Without content, the length is that of a response to GET. RFC 9110 §8.6.
            let isHeadOnly = method == .head || status == .notModified
            let isCoded = HarArchive.isCoded(
                bytes, entry.response.headers, isBase64: entry.response.content.encoding == "base64")
            var response = HttpResponse(
                status,
                fields: try HarArchive.fields(
                    entry.response.headers, isCoded: isCoded || isHeadOnly, keepsLength: isHeadOnly),
                content: isHeadOnly ? .none : .bytes(bytes))
            if let trailers = entry.response._trailers, !trailers.isEmpty {
                response.trailers = try HarArchive.fields(trailers, isCoded: false)
            }
            return Entry(request: request, response: response)
        }
    }

    /// The most bytes that are decoded to see whether content fits its coding.
    private static let mostTried = 64 << 20

    /// Whether content still has its coding. Programs write content decoded if they can decode it.
    private static func isCoded(_ bytes: [UInt8], _ lines: [Har.Line], isBase64: Bool) -> Bool {
        let codings = lines.filter { $0.name.lowercased() == "content-encoding" }.map(\.value)
        guard !codings.isEmpty else { return false }
        guard let decoder = ContentDecoder(codings) else { return true }
        guard isBase64, !decoder.isIdentity, !bytes.isEmpty else { return false }
        do {
            var decoded: [UInt8] = []
            if try decoder.decode(bytes, into: &decoded, upTo: mostTried) { try decoder.finish() }
            return true
        } catch {
            return false
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
                            postData: entry.request.content.bytes.map { bytes in
                                let text = String(validating: bytes, as: UTF8.self)
                                return .init(
                                    mimeType: entry.request.fields[.contentType] ?? "",
                                    text: text ?? Data(bytes).base64EncodedString(),
                                    _encoding: text == nil ? "base64" : nil)
                            }),
                        response: .init(
                            status: entry.response.status.code,
                            statusText: entry.response.receivedReason ?? entry.response.status.reasonPhrase,
                            headers: HarArchive.lines(entry.response.fields, hidesCredentials),
                            content: .init(entry.response),
                            _trailers: entry.response.trailers.map { HarArchive.lines($0, hidesCredentials) }))
                }))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(har))
    }

    private static func method(_ text: String) throws -> HttpMethod {
        // Some programs write the methods of the standard in lower case.
        let standard = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]
        let text = standard.contains(text.uppercased()) ? text.uppercased() : text
        guard let method = HttpMethod(text) else { throw HarFault("\(text.debugDescription) is not a method") }
        return method
    }

    /// The fields of a message. Fields of one connection, which the recorder saw but a message does not have, are left
    /// out, and so are the pseudo-fields that browsers write for HTTP/2.
    private static func fields(
        _ lines: [Har.Line], isCoded: Bool, keepsLength: Bool = false
    ) throws -> HttpFields {
        var fields = HttpFields()
        for line in lines where !line.name.hasPrefix(":") {
            guard let name = FieldName(line.name) else {
                throw HarFault("\(line.name.debugDescription) is not a field")
            }
            if name.isGatewayOwned, !(keepsLength && name == .contentLength) { continue }
            if name != .contentEncoding || isCoded { try fields.append(name, line.value) }
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
        var _failureText: String?

        /// Whether there is no response, or only its beginning.
        var hasFailed: Bool {
            let failures = [_failureText, response._failureText].compactMap(\.self)
            return failures.contains { !$0.isEmpty }
        }

        init(request: Request, response: Response) {
            self.request = request
            self.response = response
        }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            request = try container.decode(Request.self, forKey: .request)
            response = try container.decode(Response.self, forKey: .response)
            _failureText = try container.decodeIfPresent(String.self, forKey: ._failureText)
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
        /// HAR 1.2 has no encoding for requests, so programs write either of these.
        var encoding: String?
        var _encoding: String?

        var isBase64: Bool { (encoding ?? _encoding) == "base64" }

        func bytes() throws -> [UInt8] { try Har.bytes(text, isBase64: isBase64) }
    }

    struct Response: Codable {
        var status: Int
        var statusText: String?
        var httpVersion: String? = "HTTP/1.1"
        var headers: [Line]
        var content: Content
        var _trailers: [Line]?
        var _failureText: String?
    }

    static func bytes(_ text: String?, isBase64: Bool) throws -> [UInt8] {
        guard let text else { return [] }
        guard isBase64 else { return Array(text.utf8) }
        guard let data = Data(base64Encoded: text) else { throw HarFault("the content is not base64") }
        return Array(data)
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
            // Text would be taken for decoded content.
            let isCoded = response.fields.contains(.contentEncoding)
            if !isCoded, let text = String(validating: bytes, as: UTF8.self) {
                self.text = text
            } else {
                text = Data(bytes).base64EncodedString()
                encoding = "base64"
            }
        }

        func bytes() throws -> [UInt8] { try Har.bytes(text, isBase64: encoding == "base64") }
    }

    var log: Log
}
