import FoundationEssentials

/// Converts the members of a value to parameters.
enum FormEncoder {
    /// The members in the order of encoding.
    static func items(
        of value: some Encodable, _ dates: QueryItems.DateStrategy, _ data: QueryItems.DataStrategy
    ) throws -> [QueryItems.Item] {
        let store = FormStore(dates, data)
        try value.encode(to: FormValueEncoder(store: store, codingPath: []))
        return store.items
    }
}

/// Collects the parameters. Used by one call of `FormEncoder` only.
private final class FormStore {
    var items: [QueryItems.Item] = []
    private let dates: QueryItems.DateStrategy
    private let data: QueryItems.DataStrategy

    init(_ dates: QueryItems.DateStrategy, _ data: QueryItems.DataStrategy) {
        self.dates = dates
        self.data = data
    }

    /// The text of a value that is one parameter, though it encodes itself as something else; `nil` for all others.
    func text(of value: some Encodable) throws -> String? {
        switch value {
        case let date as Date: try written(date)
        case let data as Data: try written(data)
        case let decimal as Decimal: "\(decimal)"
        case let id as UUID: id.uuidString
        case let url as URL: url.absoluteString
        default: nil
        }
    }

    private func written(_ date: Date) throws -> String {
        switch dates {
        case .iso8601: return date.formatted(.iso8601)
        case .secondsSince1970:
            let seconds = date.timeIntervalSince1970
            return Int64(exactly: seconds).map(String.init) ?? seconds.description
        case .millisecondsSince1970:
            let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
            return Int64(exactly: milliseconds).map(String.init) ?? milliseconds.description
        case .custom(let write): return try write(date)
        }
    }

    private func written(_ data: Data) throws -> String {
        switch self.data {
        case .base64: return data.base64EncodedString()
        case .base64Url:
            return String(
                data.base64EncodedString().compactMap { character -> Character? in
                    switch character {
                    case "+": "-"
                    case "/": "_"
                    case "=": nil
                    default: character
                    }
                })
        case .custom(let write): return try write(data)
        }
    }

    func add(_ text: String, at path: [any CodingKey]) throws {
        guard !path.isEmpty else {
            throw EncodingError.invalidValue(
                text, .init(codingPath: [], debugDescription: "a form needs a value with members"))
        }
        // The index of an array's element does not belong to the name.
        let name = path.filter { $0.intValue == nil }.map(\.stringValue).joined(separator: ".")
        items.append(QueryItems.Item(name: name, value: text))
    }
}

private struct FormIndex: CodingKey {
    let intValue: Int?
    var stringValue: String { "\(intValue ?? 0)" }
    init(_ index: Int) { intValue = index }
    init?(intValue: Int) { self.intValue = intValue }
    init?(stringValue: String) { nil }
}

/// Encodes one value: a member, or the whole.
private struct FormValueEncoder: Encoder, SingleValueEncodingContainer {
    let store: FormStore
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(FormMembers<Key>(store: store, codingPath: codingPath))
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer { FormElements(store: store, codingPath: codingPath) }
    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() throws {}
    func encode(_ value: Bool) throws { try store.add(value ? "true" : "false", at: codingPath) }
    func encode(_ value: String) throws { try store.add(value, at: codingPath) }
    func encode(_ value: Double) throws { try store.add(value.description, at: codingPath) }
    func encode(_ value: Float) throws { try store.add(value.description, at: codingPath) }
    func encode(_ value: Int) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: Int8) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: Int16) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: Int32) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: Int64) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: UInt) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: UInt8) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: UInt16) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: UInt32) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: UInt64) throws { try store.add(String(value), at: codingPath) }
    func encode(_ value: some Encodable) throws {
        if let text = try store.text(of: value) { return try store.add(text, at: codingPath) }
        try value.encode(to: self)
    }
}

private struct FormMembers<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let store: FormStore
    let codingPath: [any CodingKey]

    private func member(_ key: any CodingKey) -> FormValueEncoder {
        FormValueEncoder(store: store, codingPath: codingPath + [key])
    }

    func encodeNil(forKey key: Key) throws {}
    func encode(_ value: some Encodable, forKey key: Key) throws { try member(key).encode(value) }
    func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
        member(key).container(keyedBy: Nested.self)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { member(key).unkeyedContainer() }
    func superEncoder() -> any Encoder { FormValueEncoder(store: store, codingPath: codingPath) }
    func superEncoder(forKey key: Key) -> any Encoder { member(key) }
}

private struct FormElements: UnkeyedEncodingContainer {
    let store: FormStore
    let codingPath: [any CodingKey]
    private(set) var count = 0

    init(store: FormStore, codingPath: [any CodingKey]) {
        self.store = store
        self.codingPath = codingPath
    }

    private mutating func next() -> FormValueEncoder {
        defer { count += 1 }
        return FormValueEncoder(store: store, codingPath: codingPath + [FormIndex(count)])
    }

    mutating func encodeNil() throws { count += 1 }
    mutating func encode(_ value: some Encodable) throws { try next().encode(value) }
    mutating func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type) -> KeyedEncodingContainer<Nested> {
        next().container(keyedBy: Nested.self)
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
    mutating func superEncoder() -> any Encoder { next() }
}
