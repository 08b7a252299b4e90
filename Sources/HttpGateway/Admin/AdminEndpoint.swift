import HttpWare

/// A path of the admin listener with the code that answers there.
struct AdminEndpoint: Sendable {
    /// The clients that have access.
    enum Access: Sendable {
        /// Every client, with any host: for probes, whose answers reveal nothing.
        case everybody
        /// Every client, except pages of other origins.
        case local
        /// Like `local`, and the token is required if one is set.
        case known
    }

    /// The path: `/v1/requests`; `/v1/requests/*` for everything one segment below; `/v1/holds/*/open` for an action
    /// there.
    let path: String
    let access: Access
    /// Whether the method is POST. Otherwise it is GET and HEAD.
    var isWrite = false
    /// Whether the method is DELETE.
    var isDelete = false
    /// The maximum content of a request, in bytes.
    var mostContent = AdminApi.mostContent
    let answer: @Sendable (AdminRequest, Exchange) -> Verdict

    /// The methods that the endpoint accepts.
    var methods: [HttpMethod] { isDelete ? [.delete] : isWrite ? [.post] : [.get, .head] }

    /// The text in place of `*`, empty without `*`; `nil` if the path does not match.
    func argument(in other: String) -> Substring? {
        guard let star = path.firstIndex(of: "*") else { return path == other ? "" : nil }
        let (prefix, suffix) = (path[..<star], path[path.index(after: star)...])
        guard other.hasPrefix(prefix), other.hasSuffix(suffix),
            other.utf8.count > prefix.utf8.count + suffix.utf8.count
        else { return nil }
        let argument = other.dropFirst(prefix.count).dropLast(suffix.count)
        return argument.contains("/") ? nil : argument
    }

    /// All endpoints.
    static func all(_ subject: AdminSubject, ui: Bool) -> [AdminEndpoint] {
        probes(subject) + status(subject) + metrics(subject) + configuration(subject) + services(subject)
            + requests(subject)
            + captures(subject) + rules(subject) + breaks() + questions() + credentials(subject) + holds(subject)
            + cache(subject)
            + offline(subject) + unread(subject) + maintenance(subject) + certificates(subject) + explanations(subject)
            + (ui ? page(subject.pageFolder) : [])
    }
}

/// A request to an endpoint.
struct AdminRequest: Sendable {
    /// The text in place of `*` in the path.
    let argument: Substring
    let query: String?
    /// The content; empty if there is none.
    var content: [UInt8] = []
    var fields = HttpFields()

    /// The first value of a parameter, still percent-encoded.
    func parameter(_ name: String) -> Substring? {
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts[0] == name { return parts.count == 2 ? parts[1] : "" }
        }
        return nil
    }

    /// The first value of a parameter, decoded.
    func text(_ name: String) -> String? {
        parameter(name).map { String(decoding: QueryParameters.decoded($0.utf8), as: UTF8.self) }
    }

    /// The names of all parameters.
    var names: [String] {
        (query ?? "").split(separator: "&").map { String($0.prefix { $0 != "=" }) }
    }
}

extension HttpResponse {
    /// A response for people and probes.
    static func plain(_ status: HttpStatus, _ text: String) -> HttpResponse {
        HttpResponse(status, fields: ["Content-Type": "text/plain; charset=utf-8"], content: .text(text + "\n"))
    }

    /// A response for programs.
    static func json(_ value: Json) -> HttpResponse {
        HttpResponse(.ok, fields: ["Content-Type": "application/json"], content: .text(value.text + "\n"))
    }
}
