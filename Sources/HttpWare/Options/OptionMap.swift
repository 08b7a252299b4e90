/// Names and their values, in the order of the file.
public struct OptionMap<Key: OptionValue, Value: Sendable>: Sendable {
    /// A name and its value.
    public struct Entry: Sendable {
        /// The name.
        public var key: Key
        /// What stands behind it.
        public var value: Value
        /// Where the value is written.
        public var location: SourceLocation

        /// Makes an entry of its parts.
        public init(key: Key, value: Value, location: SourceLocation = .code) {
            self.key = key
            self.value = value
            self.location = location
        }
    }

    /// In file order.
    public var entries: [Entry]

    /// Makes a map of its entries.
    public init(_ entries: [Entry] = []) { self.entries = entries }

    /// There is no entry.
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
