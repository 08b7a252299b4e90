/// Rules about which keys of a map go together. Call them after reading the keys: each records a mistake, and tells the schema.
extension OptionsReader {
    // MARK: Needed keys

    /// Requires each of the keys.
    public mutating func require(_ keys: String...) {
        for key in keys {
            if let index = described.lastIndex(where: { $0.key == key }) { described[index].isRequired = true }
            require(anyOf: [key], path(key), "is missing, and there is no default")
        }
    }

    /// Requires at least one of the keys. The message says what is wrong without them: `does nothing`.
    public mutating func require(anyOf keys: [String], _ message: String? = nil) {
        note(.any(keys), at: keys[0])
        require(anyOf: keys, keyPath, (message.map { "\($0); write " } ?? "needs ") + keys.joinedByOr)
    }

    /// Requires exactly one of the keys.
    public mutating func requireOne(of keys: String...) { requireOne(of: keys) }

    /// Requires exactly one of the keys.
    public mutating func requireOne(of keys: [String]) {
        exclusive(keys)
        require(anyOf: keys)
    }

    /// Requires a key if the other one has one of these values. `value` is the one that was read, or the default.
    public mutating func require<Value: OptionValue & Equatable>(
        _ key: String, with other: String, _ value: Value?, is wanting: Value..., hint: String = ""
    ) {
        note(.implies(.value(other, among: wanting, usually: value), .given(key)), at: key)
        guard isWritten, let value, wanting.contains(value), !isGiven(key), !isUnknown(other) else { return }
        guard isGiven(other) else { return require(anyOf: [key], path(key), "is missing, and there is no default") }
        fail(at: other, "\(value.optionText) needs the option \(key)\(hint)")
    }

    /// Requires content in a list or map that was written.
    public mutating func refuseEmpty(_ key: String, _ hint: String) {
        note(.filled(key), at: key)
        if isEmpty(key) { fail(at: key, "is empty; \(hint)") }
    }

    private mutating func require(anyOf keys: [String], _ keyPath: String, _ message: String) {
        requiredKey = requiredKey ?? keys.first
        guard isWritten, isMap, !keys.contains(where: isGiven) else { return }
        missing.append((keys, keyPath, message))
    }

    // MARK: Useless keys

    /// Refuses keys that have an effect only with another key, if that one is missing.
    public mutating func only(_ keys: String..., with other: String) {
        for key in keys {
            note(.implies(.given(key), .given(other)), at: key)
            if isGiven(key), !isGiven(other) { refuse(key, without: other) }
        }
    }

    /// Refuses keys that have an effect only if the other key has one of these values. `value` is the one that was read, or the default.
    public mutating func only<Value: OptionValue & Equatable>(
        _ keys: String..., with other: String, _ value: Value?, is useful: Value...
    ) {
        for key in keys {
            note(.implies(.given(key), .value(other, among: useful, usually: value)), at: key)
            guard isGiven(key), value.map(useful.contains) != true, !isUnknown(other) else { continue }
            refuse(key, without: "\(other): \(useful.map(\.optionText).joinedByOr)")
        }
    }

    /// Refuses keys that have no effect if the other key is written.
    public mutating func useless(_ keys: String..., with other: String, hint: String = "remove one of them") {
        for key in keys {
            note(.implies(.given(key), .not(.given(other))), at: key)
            if isGiven(key), isGiven(other) { fail(at: key, "has no effect with \(other); \(hint)") }
        }
    }

    /// Refuses keys that have no effect if the other key has one of these values. `value` is the one that was read, or the default.
    public mutating func useless<Value: OptionValue & Equatable>(
        _ keys: String..., with other: String, _ value: Value?, is useless: Value...,
        hint: String = "remove one of them"
    ) {
        for key in keys {
            note(.implies(.given(key), .not(.value(other, among: useless, usually: value))), at: key)
            guard isGiven(key), let value, useless.contains(value), !isUnknown(other) else { continue }
            fail(at: key, "has no effect with \(other): \(value.optionText); \(hint)")
        }
    }

    /// Refuses more than one of the keys.
    public mutating func exclusive(_ keys: String...) { exclusive(keys) }

    private mutating func exclusive(_ keys: [String]) {
        note(.single(keys), at: keys[0])
        let given = keys.filter(isGiven)
        guard given.count > 1 else { return }
        fail(at: given[1], "cannot be combined with \(given[0]); write only one of \(keys.joinedByOr)")
    }

    private mutating func refuse(_ key: String, without other: String) {
        fail(at: key, "has no effect without \(other); write \(other), or remove \(key)")
    }

    // MARK: For both

    /// Whether the value of the key is missing or has a mistake, so that it is unknown whether another key goes with it.
    private func isUnknown(_ key: String) -> Bool {
        let path = path(key)
        return missing.contains { $0.keys == [key] }
            || diagnostics.all.contains { $0.severity == .error && $0.keyPath == path }
    }

    private mutating func note(_ relation: OptionRelation, at key: String) {
        guard isDescribing, let index = described.lastIndex(where: { $0.key == key }) else { return }
        described[index].relations.append(relation)
    }
}
