import HttpWare

/// The answer of a program about one half of an exchange.
struct CalloutAnswer: Sendable, Equatable {
    enum Decision: Sendable, Equatable {
        /// The message goes on, with these changes.
        case edits(CalloutEdits)
        /// This response answers the request, or replaces the response.
        case respond(CalloutResponse)
        /// The connection is closed without a response.
        case drop
    }

    /// A text for the record.
    struct Note: Sendable, Equatable {
        let name: String
        let value: String
    }

    var decision = Decision.edits(CalloutEdits())
    var notes: [Note] = []

    private static let passes = Array("{}".utf8)
    private static let edits = ["set", "remove", "append", "method", "url", "status", "content"]
    private static let members = edits + ["notes", "respond", "drop"]
    private static let mostNotes = 64
    /// The maximum number of values in an answer.
    private static let mostValues = 50_000

    /// Reads an answer. Throws the first mistake in it.
    init(_ json: [UInt8], to half: CalloutMessage.Half) throws(CalloutFault) {
        // The most frequent answer.
        if json == CalloutAnswer.passes { return }
        let members = try CalloutAnswer.object(json, members: CalloutAnswer.members)
        let names = members.map(\.name)
        if let value = members.value("drop") {
            guard case .boolean(let drops) = value else { throw .wrong("drop must be true or false") }
            if drops { decision = .drop }
        }
        if let value = members.value("respond") {
            guard decision != .drop else { throw .wrong("respond and drop cannot stand together") }
            decision = .respond(try CalloutResponse(value))
        }
        if let other = names.first(where: { CalloutAnswer.edits.contains($0) }), decision != .edits(CalloutEdits()) {
            throw .wrong("\(other) cannot stand beside \(decision == .drop ? "drop" : "respond")")
        }
        if let value = members.value("notes") { notes = try CalloutAnswer.notes(value) }
        if case .edits = decision { decision = .edits(try CalloutEdits(members, of: half)) }
    }

    /// The members of the object that a text is. Throws if it is something else, or has other members.
    static func object(_ json: [UInt8], members known: [String]) throws(CalloutFault) -> [JsonValue.Member] {
        var rules = JsonScanner.Rules.strict
        rules.values = mostValues
        let value: JsonValue
        do throws(JsonFault) {
            value = try JsonValue(json, rules: rules)
        } catch {
            throw .wrong("the answer is not valid JSON: \(error)")
        }
        guard let members = value.members else { throw .wrong("the answer must be a JSON object") }
        try requireKnown(members, known, in: "the answer")
        return members
    }

    /// Throws if an object has another member than these.
    static func requireKnown(_ members: [JsonValue.Member], _ known: [String], in place: String) throws(CalloutFault) {
        guard let other = members.first(where: { !known.contains($0.name) }) else { return }
        throw .wrong(
            "\(place) has an unknown member \(other.name.quotedForErrors)\(didYouMean(other.name, among: known))")
    }

    /// The member `error` of an answer without success; `nil` if the content is something else.
    static func error(in json: [UInt8]) -> String? {
        guard json.count <= longestError else { return nil }
        var rules = JsonScanner.Rules.strict
        rules.values = mostValues
        let text = (try? JsonValue(json, rules: rules))?.members?.value("error")?.string
        return text.map { String($0.prefix(CalloutHello.longestError)) }
    }

    /// The largest content with an error that is read, in bytes.
    private static let longestError = 16 << 10

    private static func notes(_ value: JsonValue) throws(CalloutFault) -> [Note] {
        guard let members = value.members, members.count <= mostNotes else {
            throw .wrong("notes must be an object with at most \(mostNotes) texts")
        }
        var notes: [Note] = []
        for member in members {
            guard case .string(let text) = member.value else {
                throw .wrong("notes: \(member.name.quotedForErrors) must be a text")
            }
            notes.append(Note(name: String(member.name.prefix(50)), value: String(text.prefix(200))))
        }
        return notes
    }
}

/// A response that a program has made.
struct CalloutResponse: Sendable, Equatable {
    let status: HttpStatus
    let fields: [CalloutField]
    let content: [UInt8]

    init(_ value: JsonValue) throws(CalloutFault) {
        guard let members = value.members else { throw .wrong("respond must be an object") }
        try CalloutAnswer.requireKnown(members, ["status", "fields", "content"], in: "respond")
        guard let status = members.value("status") else { throw .wrong("respond.status is missing") }
        self.status = try CalloutEdits.status(status, at: "respond.status")
        fields =
            try members.value("fields").map { value throws(CalloutFault) in
                try CalloutField.list(value, at: "respond.fields", of: .response)
            } ?? []
        content =
            try members.value("content").map { value throws(CalloutFault) in
                try CalloutContent.read(value, at: "respond.content")
            } ?? []
    }

    /// The response as wares see it.
    var response: HttpResponse {
        var response = HttpResponse(status)
        // Cannot throw: the reader has made a line of each.
        for field in fields { try? response.fields.append(field.name, raw: field.value) }
        response.content = .bytes(content)
        return response
    }
}

/// A field line that a program has written: its name and value can be sent.
struct CalloutField: Sendable, Equatable {
    let name: FieldName
    let value: [UInt8]

    init(_ name: FieldName, _ text: String, at path: String) throws(CalloutFault) {
        guard (try? FieldLine(name, text)) != nil else {
            throw .wrong("\(path): the value of \(name.text) cannot be sent in a field")
        }
        self.name = name
        value = Array(text.utf8)
    }

    /// Reads a list of pairs.
    static func list(
        _ value: JsonValue, at path: String, of half: CalloutMessage.Half
    ) throws(CalloutFault) -> [CalloutField] {
        guard let elements = value.elements else { throw .wrong("\(path) must be a list of pairs") }
        var fields: [CalloutField] = []
        for (index, element) in elements.enumerated() {
            guard let pair = element.elements, pair.count == 2, let name = pair[0].string, let text = pair[1].string
            else { throw .wrong("\(path)[\(index)] must be a list of a name and a value") }
            fields.append(try CalloutField(self.name(name, at: path, of: half), text, at: path))
        }
        return fields
    }

    /// Reads the name of a field that a program may change.
    static func name(_ text: String, at path: String, of half: CalloutMessage.Half) throws(CalloutFault) -> FieldName {
        guard let name = FieldName(text) else {
            throw .wrong("\(path): \(text.quotedForErrors) is not a field name")
        }
        guard !name.isGatewayOwned else { throw .wrong("\(path): the gateway sets \(name.text) itself") }
        guard half == .response || name != .host else { throw .wrong("\(path): change url instead of the field Host") }
        return name
    }
}

extension [JsonValue.Member] {
    /// The value of the member of this name.
    func value(_ name: String) -> JsonValue? { first { $0.name == name }?.value }
}
