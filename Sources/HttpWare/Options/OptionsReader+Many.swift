extension OptionsReader {
    // MARK: Lists

    /// Reads a list; a single value counts as a list with one member, and replaces the whole default.
    public mutating func read<T: OptionValue>(_ key: String, into values: inout [T], doc: String = "") {
        if let read: [T] = takeList(key, OptionsReader.shown(values), doc) { values = read }
    }

    /// Reads a list without a default.
    public mutating func read<T: OptionValue>(_ key: String, into values: inout [T]?, doc: String = "") {
        if let read: [T] = takeList(key, "", doc) { values = read }
    }

    /// Reads a list that makes one value, such as a set of statuses.
    public mutating func read<T: OptionUnion>(_ key: String, into value: inout T, doc: String = "") {
        if let read: [T] = takeList(key, value.optionText, doc, type: T.optionType) { value = T(union: read) }
    }

    /// Reads a list that makes one value, without a default.
    public mutating func read<T: OptionUnion>(_ key: String, into value: inout T?, doc: String = "") {
        if let read: [T] = takeList(key, value?.optionText ?? "", doc, type: T.optionType) { value = T(union: read) }
    }

    /// Reads a list whose members keep their places, so that they can be checked later.
    public mutating func read<T: OptionValue>(_ key: String, into values: inout [Located<T>], doc: String = "") {
        if let read: [T] = takeList(key, OptionsReader.shown(values.map(\.value)), doc) { values = located(read, key) }
    }

    /// Reads a list without a default, whose members know their places.
    public mutating func read<T: OptionValue>(_ key: String, into values: inout [Located<T>]?, doc: String = "") {
        if let read: [T] = takeList(key, "", doc) { values = located(read, key) }
    }

    private mutating func takeList<T: OptionValue>(_ key: String, _ text: String, _ doc: String, type: String? = nil)
        -> [T]?
    {
        let type = type ?? "list of \(T.optionType)"
        let node = takeValue(key, type, .list(T.optionForm), text, nil, T.isSecret, doc)
        return node.flatMap { parseWords($0, path(key)) }
    }

    private static func shown(_ values: [some OptionValue]) -> String {
        "[" + values.map(\.optionText).joined(separator: ", ") + "]"
    }

    private func located<T>(_ values: [T], _ key: String) -> [Located<T>] {
        zip(values, entry(key)?.value.members ?? []).map { Located($0, at: $1.location) }
    }

    /// Reads a value with its place.
    public mutating func read<T: OptionValue>(_ key: String, into value: inout Located<T>?, doc: String = "") {
        var plain = value?.value
        read(key, into: &plain, doc: doc)
        value = plain.map { Located($0, at: location(of: key)) }
    }

    // MARK: Maps

    /// Reads a map of names to values, in file order.
    public mutating func read<K: OptionValue, V: OptionValue>(
        _ key: String, into map: inout OptionMap<K, V>, doc: String = ""
    ) {
        let type = "map of \(K.optionType) to \(V.optionType)"
        let shape = OptionShape.map(K.optionForm, .value(V.optionForm))
        guard let node = takeValue(key, type, shape, "{}", nil, V.isSecret, doc) else { return }
        if let read: OptionMap<K, V> = parseMap(node, path(key), { $0.parse($1, $2) }) { map = read }
    }

    /// Reads a map of names to lists, in file order; a single value counts as a list with one member.
    public mutating func read<K: OptionValue, V: OptionValue>(
        _ key: String, into map: inout OptionMap<K, [V]>, doc: String = ""
    ) {
        let type = "map of \(K.optionType) to list of \(V.optionType)"
        let shape = OptionShape.map(K.optionForm, .list(V.optionForm))
        guard let node = takeValue(key, type, shape, "{}", nil, V.isSecret, doc) else { return }
        if let read: OptionMap<K, [V]> = parseMap(node, path(key), { $0.parseList($1, $2) }) { map = read }
    }

    /// Reads a list of names, or a map of names to values; names from a list have the value `nil`.
    public mutating func read<K: OptionValue, V: OptionValue>(
        _ key: String, intoNames map: inout OptionMap<K, V?>, doc: String = ""
    ) {
        let type = "list of \(K.optionType), or map of \(K.optionType) to \(V.optionType)"
        let shape = OptionShape.names(K.optionForm, V.optionForm)
        guard let node = takeValue(key, type, shape, "[]", nil, V.isSecret, doc) else { return }
        if case .map = node.content {
            if let read: OptionMap<K, V?> = parseMap(node, path(key), { $0.parse($1, $2).map(Optional.some) }) {
                map = read
            }
        } else if let names: [K] = parseWords(node, path(key)) {
            map = OptionMap(zip(names, node.members).map { .init(key: $0, value: nil, location: $1.location) })
        }
    }

    // MARK: Nested options

    /// Reads a map whose keys have individual types. If the key is missing, the body runs on an empty map that is not `isWritten`.
    ///
    /// With `orWord`, that word counts as a map with an empty map for the key of that name: `tls: internal` is `tls: { internal: {} }`.
    public mutating func read(
        _ key: String, orWord word: String? = nil, doc: String = "", _ body: (inout OptionsReader) -> Void
    ) {
        let shape = word.map { OptionShape.optionsOr(word: $0) } ?? .options
        var node = takeValue(key, "options", shape, "{}", nil, false, doc)
        if let word, let place = node?.location, node?.text == word {
            let entry = ConfigNode.Entry(key: word, location: place, value: ConfigNode(.map([]), at: place))
            node = ConfigNode(.map([entry]), at: place)
        } else if let word, let text = node?.text, node?.isEmpty == false {
            let near = didYouMean(text, among: [word])
            fail(at: key, "\(text.quotedForErrors) is not \(word), nor a map of options\(near)")
            node = nil
        }
        var nested: OptionsReader
        if isDescribing {
            nested = .describing(path(key))
        } else {
            nested = OptionsReader(
                node ?? ConfigNode(.map([]), at: location), keyPath: path(key), naming: objects)
            nested.isWritten = node != nil
        }
        absorb(&nested, body)
    }

    /// Reads a list of maps. A single map counts as a list with one member. A description runs the body once.
    ///
    /// With `orText`, a text as a member counts as a map with that one key.
    public mutating func readEach(
        _ key: String, orText only: String? = nil, doc: String = "", _ body: (inout OptionsReader) -> Void
    ) {
        let node = takeValue(key, "list of options", .optionsList(orText: only), "[]", nil, false, doc)
        if isDescribing {
            var nested = OptionsReader.describing("\(path(key))[]")
            return absorb(&nested, body)
        }
        for (index, member) in (node?.members ?? []).enumerated() {
            var member = member
            if let only, member.text != nil {
                let entry = ConfigNode.Entry(key: only, location: member.location, value: member)
                member = ConfigNode(.map([entry]), at: member.location)
            }
            var nested = OptionsReader(member, keyPath: "\(path(key))[\(index)]", naming: objects)
            absorb(&nested, body)
        }
    }

    /// Reads a list of maps that may contain such lists again. A single map counts as a list with one member. The members are
    /// described only by their name, because the description would otherwise be infinite.
    public mutating func readEach(
        _ key: String, as name: String, doc: String = "", _ body: (inout OptionsReader) -> Void
    ) {
        let node = takeValue(key, "list of options", .definitions(name), "[]", nil, false, doc)
        guard !isDescribing else { return }
        let members = node?.members ?? []
        for (index, member) in members.enumerated() {
            let isList = if case .list = node?.content { true } else { false }
            var nested = OptionsReader(member, keyPath: isList ? "\(path(key))[\(index)]" : path(key), naming: objects)
            absorb(&nested, body)
        }
    }

    private mutating func absorb(_ nested: inout OptionsReader, _ body: (inout OptionsReader) -> Void) {
        body(&nested)
        diagnostics.append(nested.finish())
        neededCaptures += nested.neededCaptures
        files += nested.files
        paths += nested.paths
        references += nested.references
        for var option in nested.described {
            let prefix = keyPath.isEmpty ? "" : keyPath + "."
            let group = nested.keyPath.dropFirst(prefix.count)
            option.key = "\(group).\(option.key)"
            described.append(option)
        }
    }

    // MARK: Parsing

    /// All members of a list, as `parseList`. A boolean is a mistake: `true` for a list of hosts does not mean a host of that name.
    mutating func parseWords<T: OptionValue>(_ node: ConfigNode, _ keyPath: String) -> [T]? {
        guard let member = node.members.first(where: \.isBoolean) else { return parseList(node, keyPath) }
        let text = member.text ?? ""
        diagnostics.error(
            at: member.location, keyPath,
            "\(text) is not a list of \(T.optionType); write [first, second], or \"\(text)\" in quotes if that is a member"
        )
        return nil
    }

    /// All members; `nil` if any of them is invalid.
    mutating func parseList<T: OptionValue>(_ node: ConfigNode, _ keyPath: String) -> [T]? {
        if case .map = node.content {
            diagnostics.error(
                at: node.location, keyPath, "a map is not a list of \(T.optionType); write [first, second]")
            return nil
        }
        let members = node.members
        let isList = node.text == nil
        let values: [T] = members.enumerated().compactMap { index, member in
            parse(member, isList ? "\(keyPath)[\(index)]" : keyPath)
        }
        return values.count == members.count ? values : nil
    }

    private mutating func parseMap<K: OptionValue, V>(
        _ node: ConfigNode, _ keyPath: String, _ parseValue: (inout OptionsReader, ConfigNode, String) -> V?
    ) -> OptionMap<K, V>? {
        guard let entries = node.entries else {
            diagnostics.error(at: node.location, keyPath, "\(node.shown) is not a map; write name: value")
            return nil
        }
        let read = entries.compactMap { entry -> OptionMap<K, V>.Entry? in
            let name: K? = parse(
                ConfigNode(.scalar(entry.key, isQuoted: false), at: entry.location), "\(keyPath).\(entry.key)")
            let value = parseValue(&self, entry.value, "\(keyPath).\(entry.key)")
            guard let name, let value else { return nil }
            return .init(key: name, value: value, location: entry.value.location)
        }
        return read.count == entries.count ? OptionMap(read) : nil
    }
}
