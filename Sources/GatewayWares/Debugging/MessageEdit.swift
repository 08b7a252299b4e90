public import Capturing
import HttpWare

/// An edit of a held message. Parts that are `nil` stay unchanged.
public struct MessageEdit: Sendable {
    /// Why an edit is refused.
    public struct Mistake: Error, Sendable, Equatable {
        public let sentence: String
        /// Whether the edit would change a protected part: a token, or the target that the token is for.
        public var isForbidden = false
        /// Whether the message is in a state that does not allow the edit.
        public var isConflict = false

        public init(sentence: String, isForbidden: Bool = false, isConflict: Bool = false) {
            self.sentence = sentence
            self.isForbidden = isForbidden
            self.isConflict = isConflict
        }
    }

    public var method: String?
    /// An absolute URI, or a path with a query.
    public var url: String?
    public var status: Int?
    public var fields: [CapturedMessage.Field]?
    public var body: [UInt8]?

    /// An edit that changes nothing.
    public init() {}

    /// The edit with masked values restored. Throws if the edit cannot be applied to the message.
    func checked(for message: HeldMessage) throws(Mistake) -> MessageEdit {
        var edit = self
        if message.side == .request, status != nil {
            throw Mistake(sentence: "a request has no status; edit its method, url, headers and body")
        }
        if message.side == .response, method != nil || url != nil {
            throw Mistake(sentence: "a response has no method and no url; edit its status, headers and body")
        }
        if let method, HttpMethod(method) == nil || method == "CONNECT" {
            throw Mistake(sentence: "\(method.quotedForErrors) is not a method that can be sent")
        }
        if let method, message.carriesToken, HttpMethod(method)?.returnsRequest == true {
            throw Mistake(
                sentence: "the request carries a token of the gateway, and the response to \(method) would show it",
                isForbidden: true)
        }
        if let status, !(200...599).contains(status) {
            throw Mistake(sentence: "the status is a number from 200 to 599")
        }
        if message.status == 101, status != nil || body != nil {
            throw Mistake(sentence: "only the fields of an upgrade can be edited", isConflict: true)
        }
        if let url {
            let base = String(message.url.prefix { $0 != "?" })
            guard let target = MessageEdit.request(url, from: base), let current = MessageEdit.request("", from: base)
            else { throw Mistake(sentence: "\(url.quotedForErrors) is not an http URL, or a path that begins with /") }
            if message.carriesToken, !OriginRouter.isSame(target, current) {
                throw Mistake(
                    sentence: "the request carries a token for \(current.host ?? "its host"), and must stay there",
                    isForbidden: true)
            }
            // If the whole URL is as it was shown, it stays unchanged, so that masked parameters keep their values.
            if url == message.url { edit.url = nil }
        }
        if body != nil, !message.isContentEditable {
            throw Mistake(
                sentence: "the content is not whole, so only the head can be edited; raise maxBytes", isConflict: true)
        }
        if let fields {
            for name in message.injected
            where fields.filter({ $0.name.lowercased() == name }).map(\.value) != message.shown(name) {
                throw Mistake(
                    sentence: "\(name) holds a token of the gateway, and must not be edited", isForbidden: true)
            }
            let whole = message.unmasked(fields)
            for field in whole {
                guard let name = FieldName(field.name), (try? FieldLine(name, field.value)) != nil else {
                    throw Mistake(sentence: "\(field.name.quotedForErrors) is not a field with a valid value")
                }
            }
            edit.fields = whole
        }
        return edit
    }

    /// A request for the target that the text names, relative to a URI.
    static func request(_ url: String, from base: String) -> HttpRequest? {
        (try? HttpRequest(.get, base))?.resolve(url)
    }

    // MARK: Applying

    /// Applies a checked edit to a request.
    func apply(to request: inout HttpRequest, isForward: Bool) throws {
        if let method, let method = HttpMethod(method) { request.method = method }
        if let url, let target = MessageEdit.request(url, from: String(decoding: request.targetUri(), as: UTF8.self)) {
            if !OriginRouter.isSame(target, request), let authority = target.authority {
                request.setAuthority(authority)
            }
            if request.hasPath { MessageEdit.setPath(of: target, in: &request, isForward: isForward) }
        }
        if let fields { try MessageEdit.set(fields, in: &request.fields) }
        if let body {
            request.content = .bytes(body)
            MessageEdit.describe(body, in: &request.fields)
        }
    }

    /// Applies a checked edit to a response.
    func apply(to response: inout HttpResponse) throws {
        if let status, let status = HttpStatus(status) { response.status = status }
        if let fields { try MessageEdit.set(fields, in: &response.fields) }
        if let body {
            response.content = .bytes(body)
            MessageEdit.describe(body, in: &response.fields)
        }
    }

    /// Gives a request the path and the query of another one.
    static func setPath(of target: HttpRequest, in request: inout HttpRequest, isForward: Bool) {
        // A reverse listener never sends dot segments on.
        let hasDots = target.writtenUri.utf8.split(separator: 0x2f).contains { $0.first == 0x2e || $0.first == 0x25 }
        request.setTarget(of: target, asWritten: isForward || !hasDots)
    }

    private static func set(_ edited: [CapturedMessage.Field], in fields: inout HttpFields) throws {
        for (name, _) in Array(fields) {
            if let name = FieldName(name), !name.isGatewayOwned { fields.remove(name) }
        }
        for field in edited {
            guard let name = FieldName(field.name), !name.isGatewayOwned else { continue }
            try fields.append(name, raw: field.bytes)
        }
    }

    /// Removes the fields that described the former content. RFC 9110 §8, RFC 9530.
    private static func describe(_ body: [UInt8], in fields: inout HttpFields) {
        for name: FieldName in [
            "Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "ETag",
            "Expect",
        ] { fields.remove(name) }
    }
}
