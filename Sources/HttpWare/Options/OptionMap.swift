/// Names and their values, in file order.
public struct OptionMap<Key: OptionValue, Value: Sendable>: Sendable {
    /// A name and its value.
    public struct Entry: Sendable {
        /// The name.
        public var key: Key
        /// The value after the name.
        public var value: Value
        /// The place of the value.
        public var location: SourceLocation

        /// Makes an entry from its parts.
        public init(key: Key, value: Value, location: SourceLocation = .code) {
            self.key = key
            self.value = value
            self.location = location
        }
    }

    /// The entries in file order.
    public var entries: [Entry]

    /// Makes a map from its entries.
    public init(_ entries: [Entry] = []) { self.entries = entries }

    /// Whether there are no entries.
    public var isEmpty: Bool { entries.isEmpty }
}

extension OptionMap: RandomAccessCollection {
    public var startIndex: Int { entries.startIndex }
    public var endIndex: Int { entries.endIndex }
    public subscript(position: Int) -> Entry { entries[position] }
}

extension OptionMap: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral entries: (Key, Value)...) {
        self.init(entries.map { Entry(key: $0.0, value: $0.1) })
    }
}
