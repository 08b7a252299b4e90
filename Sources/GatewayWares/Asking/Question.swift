public import Capturing
public import HttpWare

/// A question to a person about one request, which waits for the answer. Marks stand in place of secrets.
public final class Question: Sendable {
    /// The subject of an answer.
    public enum Scope: String, Sendable {
        /// The request: its method, URL, the fields that matter, and its content.
        case request
        /// The host and port that it is for.
        case host
    }

    /// For how long an answer counts.
    public enum Span: Sendable, Equatable {
        /// For the requests that wait.
        case once
        /// Until the gateway ends.
        case run
        /// Until it is taken back: it is written to the file of approvals.
        case always
        /// For this duration, or until the gateway ends.
        case lasting(Duration)
    }

    /// How the wait of a request ends.
    enum Outcome: Sendable {
        case answered(isYes: Bool, by: String)
        case late
    }

    /// The facts about the request.
    public struct Subject: Sendable {
        /// The digest of what the answer is bound to.
        public let key: Digest256
        public let scope: Scope
        /// The principal, or else the address of the client.
        public let who: String
        public let method: String
        public let url: String
        /// The host and the port.
        public let host: String
        /// The fields, of which those with credentials are masked.
        public let fields: [CapturedMessage.Field]
        /// The beginning of the content as text; `nil` if it is not text.
        public let text: String?
        /// The bytes of the content that are known, and whether they are all of it.
        public let size: Int, isWhole: Bool
        /// The number of fields that are not shown, because there are too many bytes of them.
        public let hiddenFields: Int
        /// Whether the URL is cut.
        public let isUrlCut: Bool
        /// The number of the exchange's capture.
        public let capture: Int?
        /// The ware's label and the route.
        public let rule: String
        public let since: WallTime

        /// Whether a person sees all that an answer is bound to. Content that is not text counts as seen: its size is shown.
        public var isShownWhole: Bool { scope == .host || isWhole && hiddenFields == 0 && !isUrlCut }

        /// The most bytes of a URL and of fields that a question shows together, and the most bytes of content.
        static let mostShown = 8 << 10
    }

    /// Its number, unique in this process.
    public let id: Int
    public let subject: Subject
    /// The spans that an answer can have, the usual one first.
    public let spans: [Ask.Remember]
    /// The end of the first request's wait.
    public let until: WallTime
    /// The answers that outlive the gateway; `nil` if an answer cannot.
    let approvals: ApprovalFile?

    init(
        _ id: Int, _ subject: Subject, spans: [Ask.Remember], until: WallTime, approvals: ApprovalFile?
    ) {
        self.id = id
        self.subject = subject
        self.spans = spans
        self.until = until
        self.approvals = approvals
    }

    /// Whether an answer can count for that time.
    public func allows(_ span: Span) -> Bool {
        switch span {
        case .once: spans.contains(.once)
        case .run, .lasting: spans.contains(.run)
        case .always: spans.contains(.always)
        }
    }
}

extension Question.Subject {
    /// The facts about a request, of which `content` is the beginning.
    init(
        _ request: HttpRequest, _ exchange: Exchange, _ scope: Question.Scope, fields names: [FieldName], rule: String,
        content: (bytes: [UInt8], isWhole: Bool)
    ) {
        let redaction = CaptureRedaction(CaptureSettings(), exchange)
        let uri = exchange.writtenUri(of: request)
        let port = request.port ?? (request.scheme == "https" ? 443 : 80)
        host = "\(request.host ?? "-"):\(port)"
        let client = exchange.client.map { "\($0)" } ?? "-"
        who = exchange.principal.map { $0.name.isEmpty ? $0.method : $0.name } ?? client
        let identity = exchange.principal?.identity.hex ?? client
        // A host that may be reached by TLS must not be reached in clear text by the same answer.
        let isClear = request.method != .connect && request.scheme == "http"
        var parts = [scope.rawValue, rule, identity, host, isClear ? "clear" : "secure"]
        if scope == .request {
            parts += [request.method.name, uri, content.isWhole ? "whole" : "beginning", request.upgrade ?? ""]
            for name in names {
                for value in request.fields.rawValues(of: name) { parts += [name.text, ReceivedText.text(value)] }
            }
            // Another credential makes another request of the same one.
            for field in CaptureRedaction.plain(request.fields) where Redaction.isSecret(name: field.name) {
                parts += [field.name.lowercased(), field.value]
            }
        }
        key = content.bytes.withUnsafeBytes { bytes in
            scope == .request ? Digest256(of: parts).followed(by: bytes) : Digest256(of: parts)
        }
        self.scope = scope
        method = request.method.name
        let whole = redaction.url(uri)
        isUrlCut = whole.utf8.count > Self.mostShown
        url = isUrlCut ? String(decoding: whole.utf8.prefix(Self.mostShown), as: UTF8.self) + Redaction.mark : whole
        var left = Self.mostShown - min(url.utf8.count, Self.mostShown)
        var (shown, hidden) = ([CapturedMessage.Field](), 0)
        for field in redaction.shown(request.fields) {
            let size = field.name.utf8.count + field.value.utf8.count
            if size <= left {
                left -= size
                shown.append(field)
            } else {
                hidden += 1
            }
        }
        fields = shown
        hiddenFields = hidden
        let beginning = content.bytes.prefix(Self.mostShown)
        text = Self.text(of: beginning).map(TextMask.masked)
        size = content.bytes.count
        isWhole = content.isWhole
        capture = exchange.showCapture()
        self.rule = rule
        since = exchange.wallNow
    }

    /// The bytes as text, of which the last character may be cut off; `nil` if they are not UTF-8, or have a NUL.
    private static func text(of bytes: ArraySlice<UInt8>) -> String? {
        if bytes.contains(0) { return nil }
        for cut in 0..<min(4, bytes.count + 1) {
            if let text = String(validating: bytes.dropLast(cut), as: UTF8.self) { return text }
        }
        return nil
    }
}
