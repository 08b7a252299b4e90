public import HttpWare

/// The changes that `rewrite` makes to a query: rename, remove, set, in this order.
///
/// A query is a list of `name=value` pairs, separated by `&`. Names are compared decoded, so that each spelling of a name matches.
public struct QueryEdits: Sendable {
    /// The parameters to rename.
    public var rename: [(from: String, to: String)]
    /// The parameters to remove.
    public var remove: [String]
    /// The parameters to set: the value replaces all parameters of that name.
    public var set: [(name: String, value: Template)]

    public init(
        rename: [(from: String, to: String)] = [], remove: [String] = [], set: [(name: String, value: Template)] = []
    ) {
        self.rename = rename
        self.remove = remove
        self.set = set
    }

    var isEmpty: Bool { rename.isEmpty && remove.isEmpty && set.isEmpty }

    /// Edits the request's query. Throws if a placeholder produces a value that is invalid in a query.
    func apply(to request: inout HttpRequest, in exchange: Exchange) throws(GatewayError) {
        guard !isEmpty else { return }
        let before = request.query
        var pairs = (before ?? "").split(separator: "&", omittingEmptySubsequences: false).map(String.init)
        if before == nil || before == "" { pairs = [] }
        for (from, to) in rename {
            for index in pairs.indices where QueryEdits.name(of: pairs[index]) == from {
                pairs[index] = QueryEdits.encode(to) + pairs[index].drop { $0 != "=" }
            }
        }
        pairs.removeAll { pair in
            let name = QueryEdits.name(of: pair)
            return remove.contains(name) || set.contains { $0.name == name }
        }
        for (name, template) in set {
            pairs.append("\(QueryEdits.encode(name))=\(try QueryEdits.value(template, request, exchange))")
        }
        let after = pairs.joined(separator: "&")
        if after.isEmpty {
            if before != "" { try request.setQuery(nil) }
        } else if after != before {
            try request.setQuery(after)
        }
    }

    private static func value(
        _ template: Template, _ request: HttpRequest, _ exchange: Exchange
    ) throws(GatewayError) -> String {
        var text = ""
        for segment in template.segments {
            switch segment {
            case .text(let bytes): text += encode(String(decoding: bytes, as: UTF8.self))
            case .placeholder(let placeholder):
                let value = placeholder.value(request, in: exchange)
                guard value.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f && $0 != 0x26 && $0 != 0x23 }) else {
                    throw GatewayError(
                        .downstream, .requestMalformed,
                        "a placeholder of rewrite produced a character that is invalid in a query")
                }
                text += value
            }
        }
        return text
    }

    private static func name(of pair: String) -> String {
        String(decoding: QueryParameters.decoded(pair.utf8.prefix { $0 != 0x3d }), as: UTF8.self)
    }

    /// Percent-encodes all but unreserved characters and the harmless `,:/@!$'()*;`.
    static func encode(_ text: String) -> String {
        PercentText.text(text) { PercentText.isUnreserved($0) || ",:/@!$'()*;".utf8.contains($0) }
    }

    init(options: inout OptionsReader) {
        self.init()
        var set: OptionMap<String, Template> = [:]
        var rename: OptionMap<String, String> = [:]
        options.read(
            "set", into: &set,
            doc: "sets a query parameter and replaces all of its name; write values without percent-encoding")
        options.read("remove", into: &remove, doc: "removes all query parameters of these names")
        options.read("rename", into: &rename, doc: "gives query parameters another name")
        self.set = set.map { ($0.key, $0.value) }
        self.rename = rename.map { ($0.key, $0.value) }
    }
}
