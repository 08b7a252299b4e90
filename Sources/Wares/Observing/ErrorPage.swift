public import HttpWare

/// Replaces the content of error responses with a page in JSON, HTML or text; the status is kept.
public struct ErrorPage: Postware {
    /// The format of the page.
    public enum Format: String, OptionWord {
        case negotiate, json, html, text
    }

    /// The statuses of the responses that get the page.
    public var statuses: StatusSet
    /// The format of the page.
    public var format: Format
    /// A fixed page and its media type, in place of a page that is made from the status.
    public var fixed: (content: [UInt8], type: FieldLine)?
    /// The page with placeholders; used in place of the fixed content.
    public var filled: FilledContent?

    public var responseStatuses: StatusSet { statuses }

    public init(
        statuses: StatusSet = StatusSet([400...599]), format: Format = .negotiate,
        fixed: (content: [UInt8], type: FieldLine)? = nil
    ) {
        self.statuses = statuses
        self.format = format
        self.fixed = fixed
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard statuses.contains(response.status.code), !response.status.neverHasContent,
            response.status != .resetContent, let request = exchange.request
        else { return .pass }
        for name in ErrorPage.representation { response.fields.remove(name) }
        if let fixed {
            let content = filled?.bytes(request, in: exchange) ?? fixed.content
            if content.isEmpty {
                return .replace(with: HttpResponse(response.status, fields: response.fields))
            }
            response.fields.set(fixed.type)
            response.content = .bytes(content)
            return .pass
        }
        if format == .negotiate { response.fields.addVary(.accept) }
        let chosen = format == .negotiate ? ErrorPage.negotiated(request) : format
        response.fields.set(ErrorPage.type(chosen))
        response.content = .text(ErrorPage.page(response.status, chosen))
        return .pass
    }

    /// The fields that describe the content that is replaced. RFC 9110 §8, §14; RFC 9530.
    private static let representation: [FieldName] = [
        .contentType, .contentEncoding, .contentLength, .contentRange, .contentLocation, .contentDisposition, .etag,
        .lastModified, .acceptRanges, .trailer, "Content-Language", "Content-MD5", "Content-Digest", "Repr-Digest",
        "Digest",
    ]

    // MARK: Pages

    private static let json = FieldLine(literal: .contentType, "application/problem+json")
    private static let html = FieldLine(literal: .contentType, "text/html; charset=utf-8")
    private static let text = FieldLine(literal: .contentType, "text/plain; charset=utf-8")

    private static func type(_ format: Format) -> FieldLine {
        switch format {
        case .json, .negotiate: json
        case .html: html
        case .text: text
        }
    }

    /// Makes a page from the status alone, so that it contains nothing that a peer sent.
    private static func page(_ status: HttpStatus, _ format: Format) -> String {
        let title = status.reasonPhrase.isEmpty ? "Status" : status.reasonPhrase
        return switch format {
        case .json, .negotiate:
            "{\"type\":\"about:blank\",\"title\":\"\(title)\",\"status\":\(status.code)}\n"
        case .html:
            """
            <!doctype html>
            <html lang="en">
            <head><meta charset="utf-8"><title>\(status.code) \(title)</title></head>
            <body><h1>\(status.code) \(title)</h1></body>
            </html>

            """
        case .text: "\(status.code) \(title)\n"
        }
    }

    // MARK: Negotiation

    /// Chooses the best of JSON, HTML and text by the `Accept` that the client sent; JSON if no other is better.
    static func negotiated(_ request: HttpRequest) -> Format {
        guard let accepted = AcceptedMedia(request) else { return .json }
        let candidates: [(Format, Double)] = [
            (.json, accepted.problemQuality), (.html, accepted.quality(of: "text/html")),
            (.text, accepted.quality(of: "text/plain")),
        ]
        var best = (Format.json, 0.0)
        for candidate in candidates where candidate.1 > best.1 { best = candidate }
        return best.0
    }
}

extension ErrorPage: ConfigurableWare {
    public static let name: WareName = "errorPage"
    public static let chainPlace: ChainPlace? = .errorPages
    public static let about = WareAbout(
        "Replaces the content of error responses with a page in JSON, HTML or text; the status is kept.",
        source: "RFC 9457, RFC 9110 §12.5.1",
        example: #"""
            - errorPage: { statuses: [404], body: "There is nothing at {request.path}.\n" }
            - errorPage: { statuses: [5xx], format: negotiate }
            """#,
        details: #"""
            Without `body` and `file`, the page is made from the status alone. `negotiate` then chooses problem+json,
            HTML or plain text by the request's `Accept`, and JSON if no other format is preferred; it adds `Accept` to
            `Vary`. With `body` or `file`, `format` states the format of that page. `negotiate` then detects it by the
            file's extension, or else by its first character. A relative `file` is relative to the configuration file
            that contains it. Fields that do not describe the content are kept.

            `body` may contain placeholders, which get their values from the request as it went upstream. In HTML and
            JSON pages values are escaped. In JSON a placeholder must be inside a string. `{{name}` stands for the text
            `{name}`; other braces stand for themselves. A `file` is sent unchanged.
            """#,
        otherNames: ["errors", "customErrors", "handleErrors", "localReply"])

    public init(options: inout OptionsReader) {
        var body: ContentTemplate?
        var file: FilePath?
        self.init()
        options.read("statuses", into: &statuses, doc: "statuses of the responses that get the page")
        options.read("body", into: &body, doc: "text of the page, with placeholders; only one of body and file")
        options.read(
            "file", into: &file,
            doc: "file with the page, read when the configuration is loaded; at most 16MiB; only one of body and file")
        options.read(
            "format", into: &format,
            doc: "format of the page; negotiate chooses by the request's Accept, or detects that of body or file")
        options.refuseEmpty("statuses", "write such as [404, 5xx]")
        options.exclusive("body", "file")
        if let file {
            let content = LoadedFile.read(file.path, "file", &options) ?? []
            let named = LoadedFile.mediaType(ofName: file.path).map { FieldLine(literal: .contentType, $0) }
            let first = content.first { $0 > 0x20 }
            fixed = (content, format == .negotiate ? named ?? ErrorPage.guess(first) : ErrorPage.type(format))
        } else if let body {
            let type = format == .negotiate ? ErrorPage.guess(body.firstByte) : ErrorPage.type(format)
            fixed = (body.fixedText ?? [], type)
            filled = FilledContent(body, type: type.value, at: "body", &options)
        }
    }

    /// HTML begins with `<`, JSON with a brace or a bracket; anything else is text.
    private static func guess(_ first: UInt8?) -> FieldLine {
        switch first {
        case UInt8(ascii: "<"): html
        case UInt8(ascii: "{"), UInt8(ascii: "["): FieldLine(literal: .contentType, "application/json")
        default: text
        }
    }
}
