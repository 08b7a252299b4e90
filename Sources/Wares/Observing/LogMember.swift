public import HttpWare

/// A member of a JSON line of the access log.
public enum LogMember: Sendable, Hashable {
    /// A property of an exchange.
    public enum Item: String, Sendable, CaseIterable {
        case time, client, method, target, host, `protocol`, status, bytes, unfilteredBytes, duration, principal
        case upstream, route, service, responder, userAgent, referer, id, traceId, fault, end, wares

        /// The default members of a line.
        static let usual = allCases.filter { $0 != .wares }
    }

    case item(Item)
    /// A field of the request as it was received.
    case requestField(FieldName)
    /// A text that a ware has kept by name.
    case note(String)
    /// A field of the response as it went to the client.
    case responseField(FieldName)
}

extension LogMember: OptionValue {
    public static let optionType = "log member"
    public static var optionForm: OptionForm {
        .either([.words(words.map(\.name)), .pattern("((request|response)[.]header|note)[.].+")])
    }

    private static let words: [(name: String, member: LogMember)] =
        Item.allCases.map { ($0.rawValue, .item($0)) } + [("trace.id", .item(.traceId))]

    public var optionText: String {
        switch self {
        case .item(let item): item.rawValue
        case .requestField(let name): "request.header.\(name.lowercased)"
        case .responseField(let name): "response.header.\(name.lowercased)"
        case .note(let name): "note.\(name)"
        }
    }

    /// Reads `status`, `trace.id` or `response.header.X-Cache`, for example.
    public init(optionText: String) throws(OptionMistake) {
        if let found = LogMember.words.first(where: { $0.name == optionText }) {
            self = found.member
            return
        }
        for (prefix, isRequest) in [("request.header.", true), ("response.header.", false)]
        where optionText.hasPrefix(prefix) {
            guard let name = FieldName(optionText.dropFirst(prefix.count).description) else {
                throw OptionMistake("write a field name behind \(prefix)")
            }
            self = isRequest ? .requestField(name) : .responseField(name)
            return
        }
        if optionText.hasPrefix("note."), optionText.utf8.count > 5 {
            self = .note(String(optionText.dropFirst(5)))
            return
        }
        let names = LogMember.words.map(\.name)
        throw OptionMistake(
            "write \(names.joined(separator: ", ")), request.header.NAME, response.header.NAME or note.NAME\(didYouMean(optionText, among: names))",
            problem: "\(optionText.quotedForErrors) is not a member of log lines")
    }
}
