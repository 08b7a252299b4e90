public import HttpWare

/// The five verbs of `requestHeaders` and `responseHeaders`, prepared when the configuration is loaded.
///
/// They run in the order rename, remove, set, setIfAbsent, append. Values without placeholders are kept as the bytes
/// that go over the wire, so that an edit allocates only what the message's own buffers need.
public struct FieldEdits: Sendable {
    /// A field with its value, which is fixed or made from the exchange.
    enum Value: Sendable {
        case fixed(FieldLine)
        case made(FieldName, Template)

        var name: FieldName {
            switch self {
            case .fixed(let line): line.name
            case .made(let name, _): name
            }
        }
    }

    var rename: [(from: FieldName, to: FieldName)] = []
    var remove: [FieldName] = []
    var set = FieldBlock([])
    var madeSet: [(name: FieldName, value: Template)] = []
    var setIfAbsent: [Value] = []
    var append: [Value] = []
    private var hasBefore = false
    private var hasSet = false
    private var hasAfter = false
    /// Whether a fixed value is added to a field that is named like a credential.
    private(set) var addsSecret = false

    /// Edits with fixed values, for chains that are made in code. Fields that frame the message trap.
    public init(
        set: HttpFields = HttpFields(), setIfAbsent: HttpFields = HttpFields(), append: HttpFields = HttpFields(),
        remove: [FieldName] = [], rename: [(from: FieldName, to: FieldName)] = []
    ) {
        self.set = FieldBlock(FieldEdits.lines(set))
        self.setIfAbsent = FieldEdits.lines(setIfAbsent).map(Value.fixed)
        self.append = FieldEdits.lines(append).map(Value.fixed)
        self.remove = remove
        self.rename = rename
        let names = remove + rename.flatMap { [$0.from, $0.to] }
        precondition(!names.contains(where: FieldEdits.isFraming), "a field that frames the message")
        seal()
    }

    private static func lines(_ fields: HttpFields) -> [FieldLine] {
        fields.compactMap { name, value in
            // The lines of a message are valid, so neither can fail.
            guard let name = FieldName(name), let line = try? FieldLine(name, value) else { return nil }
            precondition(!isFraming(name), "a field that frames the message")
            return line
        }
    }

    // MARK: Acting

    /// Edits the fields of a message. Throws if a placeholder produces a byte that is invalid in a field.
    @inline(__always)
    func apply(to message: inout some EditedMessage, in exchange: Exchange) throws(InvalidFieldValue) {
        if hasBefore { applyBefore(to: &message) }
        if hasSet { message.fields.set(set) }
        if hasAfter { try applyAfter(to: &message, in: exchange) }
    }

    private func applyBefore(to message: inout some EditedMessage) {
        for (from, to) in rename { message.fields.rename(from, to: to) }
        for name in remove { message.fields.remove(name) }
    }

    /// Notes which verbs are used, so that no message pays for the others.
    private mutating func seal() {
        hasBefore = !rename.isEmpty || !remove.isEmpty
        hasSet = !set.isEmpty
        hasAfter = !madeSet.isEmpty || !setIfAbsent.isEmpty || !append.isEmpty
        let added = (setIfAbsent + append).compactMap { value -> FieldName? in
            if case .fixed(let line) = value { line.name } else { nil }
        }
        addsSecret = (set.names + added).contains {
            Redaction.fields.contains($0) || Redaction.isSecret(parameter: $0.text)
        }
    }

    private func applyAfter(to message: inout some EditedMessage, in exchange: Exchange) throws(InvalidFieldValue) {
        for (name, value) in madeSet {
            let text = message.text(value, in: exchange)
            try message.fields.set(name, to: text)
        }
        for value in setIfAbsent where !message.fields.contains(value.name) {
            message.fields.removeTwins(of: value.name)
            try add(value, to: &message, in: exchange)
        }
        for value in append { try add(value, to: &message, in: exchange) }
    }

    private func add(
        _ value: Value, to message: inout some EditedMessage, in exchange: Exchange
    ) throws(InvalidFieldValue) {
        switch value {
        case .fixed(let line): message.fields.append(line)
        case .made(let name, let template):
            let text = message.text(template, in: exchange)
            try message.fields.append(name, text)
        }
    }

    // MARK: Reading

    /// Whether the field frames the message or concerns only one connection, so that only the gateway writes it.
    static func isFraming(_ name: FieldName) -> Bool { name.isGatewayOwned }

    /// Reads the five verbs. If `Host` may be set, its value in `set` is passed to `setHost`.
    init(options: inout OptionsReader, setHost: ((Template, inout OptionsReader) -> Void)? = nil) {
        var set: OptionMap<FieldName, Template> = [:]
        var setIfAbsent: OptionMap<FieldName, Template> = [:]
        var append: OptionMap<FieldName, [Template]> = [:]
        var remove: [FieldName] = []
        var rename: OptionMap<FieldName, FieldName> = [:]
        options.read(
            "set", into: &set,
            doc: "sets a field to this value and replaces all its lines; not for framing fields such as Content-Length")
        options.read(
            "setIfAbsent", into: &setIfAbsent,
            doc:
                "adds a field only if the message does not have it; not for Host or framing fields such as Content-Length"
        )
        options.read(
            "append", into: &append,
            doc:
                "adds one or more lines to a field and keeps the existing lines; not for Host or framing fields such as Content-Length"
        )
        options.read(
            "remove", into: &remove,
            doc: "removes all lines of a field; not for Host or framing fields such as Content-Length")
        options.read(
            "rename", into: &rename,
            doc:
                "moves the lines of one field to another name and replaces the lines there; not for Host or framing fields such as Content-Length"
        )

        check(set.map(\.key), "set", allowsHost: setHost != nil, &options)
        check(setIfAbsent.map(\.key), "setIfAbsent", allowsHost: false, &options)
        check(append.map(\.key), "append", allowsHost: false, &options)
        check(remove, "remove", allowsHost: false, &options)
        check(rename.map(\.key), "rename", allowsHost: false, &options)
        check(rename.map(\.value), "rename", allowsHost: false, &options)

        if let setHost {
            for entry in set where entry.key == .host { setHost(entry.value, &options) }
            set.entries.removeAll { $0.key == .host }
        }
        prepare(set, "set", &options)
        self.setIfAbsent = setIfAbsent.compactMap {
            FieldEdits.value($0.key, $0.value, "setIfAbsent", &options)
        }
        for entry in append {
            self.append += entry.value.compactMap { FieldEdits.value(entry.key, $0, "append", &options) }
        }
        self.remove = remove
        self.rename = rename.map { ($0.key, $0.value) }
        seal()
    }

    /// Makes edits with only `set`, whose fields were read as another option.
    init(options: inout OptionsReader, setting map: OptionMap<FieldName, Template>, at key: String) {
        check(map.map(\.key), key, allowsHost: false, &options)
        prepare(map, key, &options)
        seal()
    }

    /// Prepares `set`: fixed lines as one block, the others as templates.
    private mutating func prepare(
        _ map: OptionMap<FieldName, Template>, _ key: String, _ options: inout OptionsReader
    ) {
        var fixed: [FieldLine] = []
        for entry in map {
            switch FieldEdits.value(entry.key, entry.value, key, &options) {
            case .fixed(let line): fixed.append(line)
            case .made(let name, let template): madeSet.append((name, template))
            case nil: break
            }
        }
        set = FieldBlock(fixed)
    }

    /// The fields that are removed and not added again.
    var takenFields: [FieldName] {
        let given = givenFields
        return (remove + rename.map(\.from)).filter { !given.contains($0) }
    }

    /// The fields that are present afterwards, or may be.
    var givenFields: [FieldName] {
        self.set.names + madeSet.map(\.name) + setIfAbsent.map(\.name) + append.map(\.name) + rename.map(\.to)
    }

    /// Whether the edits change nothing.
    var isEmpty: Bool { !hasBefore && !hasSet && !hasAfter }

    private func check(_ names: [FieldName], _ verb: String, allowsHost: Bool, _ options: inout OptionsReader) {
        var seen: Set<FieldName> = []
        for name in names {
            if FieldEdits.isFraming(name) {
                options.fail(
                    at: verb, "\(name) frames the message or concerns one connection; the gateway itself writes it")
            } else if name == .host && !allowsHost {
                options.fail(at: verb, "Host cannot be changed here; use set in requestHeaders")
            }
            if !seen.insert(name).inserted { options.fail(at: verb, "\(name) is listed twice") }
        }
    }

    /// A template as a value of this field. If its fixed text is invalid in a field, records a mistake and returns
    /// `nil`.
    static func value(
        _ name: FieldName, _ template: Template, _ key: String, _ options: inout OptionsReader
    ) -> Value? {
        guard let fixed = template.fixedText else {
            for case .text(let bytes) in template.segments where !bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) {
                options.fail(at: key, "the value of \(name) holds a control character")
                return nil
            }
            return .made(name, template)
        }
        guard let line = try? FieldLine(name, String(decoding: fixed, as: UTF8.self)) else {
            options.fail(at: key, "the value of \(name) holds a control character, or a space at its ends")
            return nil
        }
        return .fixed(line)
    }
}

/// A message whose fields are edited, and from which placeholders are filled in.
protocol EditedMessage {
    var fields: HttpFields { get set }
    /// Fills in a template, and removes white space at both ends, which does not belong to a field's value (RFC 9110
    /// §5.5).
    func text(_ template: Template, in exchange: Exchange) -> String
}

extension HttpRequest: EditedMessage {
    func text(_ template: Template, in exchange: Exchange) -> String {
        template.text(self, in: exchange).withoutOuterSpace
    }
}

extension HttpResponse: EditedMessage {
    func text(_ template: Template, in exchange: Exchange) -> String {
        exchange.request.map { template.text($0, in: exchange).withoutOuterSpace } ?? ""
    }
}

extension String {
    /// The text without spaces and tabs at both ends.
    fileprivate var withoutOuterSpace: String {
        guard let first = utf8.first, let last = utf8.last else { return self }
        guard first == 0x20 || first == 0x09 || last == 0x20 || last == 0x09 else { return self }
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        guard let start = utf8.firstIndex(where: { !isSpace($0) }),
            let end = utf8.lastIndex(where: { !isSpace($0) })
        else { return "" }
        return String(self[start...end])
    }
}
