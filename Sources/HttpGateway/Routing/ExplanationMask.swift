import GatewayConfig
public import HttpWare

/// Masks secrets in an explanation with `***`, and user information with a mark.
public struct ExplanationMask {
    private let secrets: [String]

    public init(_ explanation: Explanation) { secrets = explanation.secrets }

    /// The text without secrets, and without user information.
    public func text(_ text: String) -> String { Redaction.text(known(text)) }

    /// The options without secrets, also where one stands under another key, by an alias.
    func options(_ node: ConfigNode) -> ConfigNode {
        var copy = node.masked
        switch copy.content {
        case .scalar(let shown, let isQuoted): copy.content = .scalar(text(shown), isQuoted: isQuoted)
        case .list(let members): copy.content = .list(members.map(options))
        case .map(let entries):
            copy.content = .map(
                entries.map {
                    ConfigNode.Entry(key: text($0.key), location: $0.location, value: options($0.value))
                })
        }
        return copy
    }

    /// The text without the secrets of the configuration.
    private func known(_ text: String) -> String { secrets.reduce(text) { $0.replacing($1, with: "***") } }

    /// The field line, without its value if that can be a credential.
    public func line(_ line: String) -> String {
        let name = line.prefix { $0 != ":" }
        if FieldName(String(name)).map(Redaction.fields.contains) ?? false { return "\(name): ***" }
        let shown = text(line)
        // The rest of a value whose secret is masked tells nothing, nor do the words in place of a token.
        let isSafe = shown.contains("***") || shown.contains("<token of ")
        return isSafe || !Redaction.isSecret(name: String(name)) ? shown : "\(name): ***"
    }

    /// A request line or target, as records show it. Its query is masked if it contains an encoded secret or user information.
    public func target(_ target: String) -> String {
        let words = known(target).split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let shown = words.map(Redaction.target).joined(separator: " ")
        guard let question = shown.firstIndex(of: "?") else { return shown }
        let query = String(decoding: QueryParameters.decoded(shown[question...].utf8), as: UTF8.self)
        let isSafe = query.contains("//") ? text(query) == query : known(query) == query
        if isSafe { return shown }
        let end = shown[question...].firstIndex(of: " ") ?? shown.endIndex
        return shown[...question] + "***" + shown[end...]
    }
}

extension ConditionOptions {
    /// A description: `method GET or HEAD, status 5xx`.
    public var words: String { request.words }
}

extension RequestMatch {
    /// A description: `method GET or HEAD, not (path /health)`.
    public var words: String {
        var parts: [String] = []
        func add(_ key: String, _ values: [String]) {
            if !values.isEmpty { parts.append("\(key) \(values.joined(separator: " or "))") }
        }
        add("method", methods.map(\.name))
        add("scheme", schemes.map(\.rawValue))
        add("host", hosts.map(\.source))
        add("path", pathWords)
        add("client", clients.map(\.description))
        func add(_ kind: String, _ name: String, _ values: [ValueMatch]) {
            let isSecret = !values.isEmpty && Redaction.isSecret(name: name)
            add("\(kind) \(name)", isSecret ? ["***"] : values.map(\.optionText))
        }
        for header in headers { add("header", "\(header.name)", header.values) }
        for cookie in cookies { add("cookie", cookie.name, cookie.values) }
        for query in query { add("query", query.name, query.values) }
        add("status", response.statuses.map { ["\($0)"] } ?? [])
        add("responder", response.responders)
        for header in response.headers { add("response header", "\(header.name)", header.values) }
        add("not", not.map { "(\($0.words))" })
        add("any of", any.map { "(\($0.words))" })
        return parts.joined(separator: ", ")
    }

    /// The patterns and expressions of the path, as written.
    var pathWords: [String] { paths.map(\.source) + pathExpressions.map { "~" + $0.source } }
}

extension ChainEntry {
    /// The ware's name in configuration files.
    public var wareName: String { (ware as? any ConfigurableWare).map { type(of: $0).name.text } ?? label }
}

extension DryRun.Decision {
    /// The decision in a word or two.
    public var word: String {
        switch self {
        case .passed: "passed"
        case .skipped: "skipped"
        case .answered: "answers"
        case .waits: "waits"
        case .needsContent: "needs content"
        case .failed: "failed"
        case .notReached: "not reached"
        }
    }
}

extension DryRun.Meaning {
    /// The meaning in a few words.
    public var word: String {
        switch self {
        case .runs: "runs"
        case .doesNotRun: "skipped"
        case .dependsOnResponse: "depends on the response"
        case .undecided: "undecided"
        }
    }
}
