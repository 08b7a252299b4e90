import Capturing
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

    /// Reads an archive. Attempts that failed, and values that were masked, are left out. Throws if it is not JSON of that form, or if
    /// the method or the URL of an entry is invalid.
    public init(json: [UInt8]) throws {
        entries = try HarReader(json).exchanges.compactMap { captured in
            guard captured.fault == nil, captured.status != nil else { return nil }
            guard let method = HttpMethod(captured.method) else {
                throw HarFault("\(captured.method.debugDescription) is not a method")
            }
            let content = captured.request.content.kept
            let request = try HttpRequest(
                method, captured.url, fields: captured.request.replayedFields(),
                content: content.isEmpty ? .text("") : .bytes(content))
            guard request.host != nil else { throw HarFault("\(captured.url.debugDescription) is not an absolute URL") }
            return Entry(request: request, response: captured.replayed(isHead: method == .head))
        }
    }

    /// Reads a file.
    public init(path: String) throws { try self.init(json: Array(Data(contentsOf: URL(filePath: path)))) }

    /// Writes the archive, with content decoded. Values of fields that carry credentials are `…` unless `hidesCredentials` is false.
    public func json(hidesCredentials: Bool = true) throws -> [UInt8] {
        var writer = HarWriter()
        let texts = entries.enumerated().map { index, entry in
            var captured = CapturedExchange(
                id: index + 1, started: WallTime(seconds: 0), method: entry.request.method.name,
                url: entry.request.receivedTarget, version: "HTTP/1.1", listener: "",
                request: HarArchive.message(entry.request.fields, entry.request.content.bytes, hidesCredentials))
            captured.status = entry.response.status.code
            captured.reason = entry.response.receivedReason
            captured.isReasonRaw = entry.response.isReasonRaw
            var response = HarArchive.message(entry.response.fields, entry.response.content.bytes, hidesCredentials)
            response.trailers =
                HarArchive.message(entry.response.trailers ?? HttpFields(), nil, hidesCredentials).fields
            captured.response = response
            return writer.entry(captured)
        }
        return writer.begin() + texts.joined() + writer.end()
    }

    /// Writes the archive to a file, which it replaces as a whole; see `json(hidesCredentials:)`.
    public func write(to path: String, hidesCredentials: Bool = true) throws {
        try Data(json(hidesCredentials: hidesCredentials)).write(to: URL(filePath: path), options: .atomic)
    }

    private static func message(_ fields: HttpFields, _ content: [UInt8]?, _ hidesCredentials: Bool) -> CapturedMessage
    {
        var message = CapturedMessage(
            fields: CapturedFields(
                fields.map { name, value in
                    let isHidden = hidesCredentials && FieldName(name).map(Redaction.fields.contains) ?? false
                    return CapturedMessage.Field(name, isHidden ? Redaction.mark : value)
                }))
        message.content.kept = content ?? []
        message.content.size = message.content.kept.count
        return message
    }
}

/// An entry of an archive that is not a message.
public struct HarFault: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
