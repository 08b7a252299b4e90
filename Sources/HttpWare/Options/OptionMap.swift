/// Names and their values, in the order of the file.
public struct OptionMap<Key: OptionValue, Value: Sendable>: Sendable {
    public struct Entry: Sendable {
        public var key: Key
        public var value: Value
        public var location: SourceLocation

        public init(key: Key, value: Value, location: SourceLocation = .code) {
            self.key = key
            self.value = value
            self.location = location
        }
    }

    public var entries: [Entry]

    public init(_ entries: [Entry] = []) { self.entries = entries }

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
