import HttpWare

/// The changes of a message that a program has asked for.
struct CalloutEdits: Sendable, Equatable {
    /// A field whose lines are replaced.
    struct Setting: Sendable, Equatable {
        let name: FieldName
        let values: [CalloutField]
    }

    var remove: [FieldName] = []
    var set: [Setting] = []
    var append: [CalloutField] = []
    var method: HttpMethod?
    /// An absolute URL, or a path with a query.
    var url: String?
    var status: HttpStatus?
    var content: [UInt8]?

    /// No changes.
    init() {}

    /// Reads the changes in an answer.
    init(_ members: [JsonValue.Member], of half: CalloutMessage.Half) throws(CalloutFault) {
        for member in members {
            let (name, value) = (member.name, member.value)
            switch name {
            case "method", "url":
                guard half == .request else { throw .wrong("\(name) can be changed only in the request half") }
                guard let text = value.string else { throw .wrong("\(name) must be a text") }
                if name == "url" { url = text } else { method = try CalloutEdits.method(text) }
            case "status":
                guard half == .response else { throw .wrong("status can be changed only in the response half") }
                status = try CalloutEdits.status(value, at: name)
            case "remove":
                guard let elements = value.elements else { throw .wrong("remove must be a list of field names") }
                for element in elements {
                    guard let text = element.string else { throw .wrong("remove must be a list of field names") }
                    remove.append(try CalloutField.name(text, at: name, of: half))
                }
            case "set": set = try CalloutEdits.settings(value, half)
            case "append": append = try CalloutField.list(value, at: name, of: half)
            case "content": content = try CalloutContent.read(value, at: name)
            default: break
            }
        }
    }

    private static func method(_ text: String) throws(CalloutFault) -> HttpMethod {
        guard let method = HttpMethod(text) else { throw .wrong("\(text.quotedForErrors) is not a method") }
        // A response to HEAD has no content, one to TRACE shows the request, and CONNECT has no URL.
        guard ![.connect, .head, .trace].contains(method) else {
            throw .wrong("\(method) changes how the response is framed; write another method")
        }
        return method
    }

    /// Reads the status of a final response.
    static func status(_ value: JsonValue, at path: String) throws(CalloutFault) -> HttpStatus {
        guard case .number(let digits) = value, let code = Int(digits), (200...599).contains(code),
            let status = HttpStatus(code)
        else { throw .wrong("\(path) must be a number from 200 to 599") }
        return status
    }

    private static func settings(_ value: JsonValue, _ half: CalloutMessage.Half) throws(CalloutFault) -> [Setting] {
        guard let members = value.members else { throw .wrong("set must be an object of field names and values") }
        var settings: [Setting] = []
        for member in members {
            let name = try CalloutField.name(member.name, at: "set", of: half)
            guard !settings.contains(where: { $0.name == name }) else { throw .wrong("set has \(name.text) twice") }
            var values: [CalloutField] = []
            for value in member.value.elements ?? [member.value] {
                guard let text = value.string else {
                    throw .wrong("set.\(name.text) must be a text, or a list of texts")
                }
                values.append(try CalloutField(name, text, at: "set"))
            }
            guard !values.isEmpty else { throw .wrong("set.\(name.text) is an empty list; use remove") }
            settings.append(Setting(name: name, values: values))
        }
        return settings
    }

    // MARK: Applying

    /// Changes a request. Throws, and leaves the request as it was, if that is not possible.
    func apply(to request: inout HttpRequest, in exchange: Exchange) throws(CalloutFault) {
        guard self != CalloutEdits() else { return }
        var edited = request
        if let method, method != edited.method {
            guard edited.method != .head, edited.method != .connect, edited.upgrade == nil else {
                throw .wrong("the method of this request cannot be changed")
            }
            edited.method = method
        }
        if let url { try CalloutUrl.set(url, of: &edited, in: exchange) }
        if let content {
            guard edited.method != .connect, edited.upgrade == nil else {
                throw .wrong("the content of this request cannot be changed")
            }
            edited.content = .bytes(content)
            CalloutEdits.forgetDescription(&edited.fields)
        }
        change(&edited.fields)
        request = edited
        if content != nil { exchange.requestContentChanges() }
    }

    /// Changes a response. Throws, and leaves the response as it was, if that is not possible.
    func apply(to response: inout HttpResponse, in exchange: Exchange) throws(CalloutFault) {
        guard self != CalloutEdits() else { return }
        guard response.status != .switchingProtocols || status == nil && content == nil else {
            throw .wrong("only the fields of an upgrade can be changed")
        }
        if let status { response.status = status }
        if let content {
            response.content = .bytes(content)
            CalloutEdits.forgetDescription(&response.fields)
            exchange.responseContentChanges()
        }
        change(&response.fields)
    }

    private func change(_ fields: inout HttpFields) {
        for name in remove { fields.remove(name) }
        for setting in set {
            fields.remove(setting.name)
            // Cannot throw, here and below: the reader has made a line of each.
            for field in setting.values { try? fields.append(field.name, raw: field.value) }
        }
        for field in append { try? fields.append(field.name, raw: field.value) }
    }

    /// Removes the fields that describe the former content. RFC 9110 §8, RFC 9530.
    private static func forgetDescription(_ fields: inout HttpFields) {
        for name in described where fields.contains(name) { fields.remove(name) }
    }

    private static let described: [FieldName] =
        [.contentLength, .contentEncoding, .contentRange, .acceptRanges, .etag, .lastModified] + HttpFields.digests
}

/// The URL of a request as programs see it, and how they change it.
enum CalloutUrl {
    /// The URL, with the client's scheme; a path if the request names no host; the authority if it has no path.
    static func text(of request: HttpRequest, in exchange: Exchange) -> String {
        let authority = request.authority?.description ?? ""
        guard request.hasPath else { return request.method == .connect ? authority : "*" }
        let target = ReceivedText.target(request.upstreamTargetBytes)
        return authority.isEmpty ? target : "\(exchange.clientScheme(of: request))://\(authority)\(target)"
    }

    /// Sends a request to another URL: an absolute one, or a path with a query. Its scheme must be that of the request.
    static func set(_ url: String, of request: inout HttpRequest, in exchange: Exchange) throws(CalloutFault) {
        let shown = text(of: request, in: exchange)
        guard url != shown else { return }
        guard url.hasPrefix("/") && !url.hasPrefix("//") || url.contains("://") else {
            throw .wrong("\(url.quotedForErrors) is not an http URL, or a path that begins with /")
        }
        guard request.hasPath else { throw .wrong("the URL of this request cannot be changed") }
        let base = shown.hasPrefix("/") ? "http://localhost\(shown)" : shown
        guard let target = MessageEdit.request(url, from: String(base.prefix { $0 != "?" })), target.hasPath else {
            throw .wrong("\(url.quotedForErrors) is not an http URL, or a path that begins with /")
        }
        guard url.hasPrefix("/") || target.scheme == exchange.clientScheme(of: request) else {
            throw .wrong("the scheme of the URL cannot be changed")
        }
        if !url.hasPrefix("/"), let authority = target.authority,
            authority.description != request.authority?.description
        {
            request.setAuthority(authority)
        }
        MessageEdit.setPath(of: target, in: &request, isForward: exchange.isForward)
    }
}
