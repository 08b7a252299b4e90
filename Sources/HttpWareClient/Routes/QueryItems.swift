import HttpWare

/// Parameters of a query or a form, in the written order. A name may occur more than once.
///
/// ```swift
/// var query: QueryItems { ["tag": tags, "page": page, "sort": Sort.newest] }   // an array: several; nil: none
/// ```
public struct QueryItems: Sendable, Hashable {
    /// One parameter, not yet encoded.
    public struct Item: Sendable, Hashable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    public private(set) var items: [Item] = []

    /// No parameters.
    public init() {}

    /// The members of a value: one parameter for each member, one for each element of an array, none for `nil`. Members
    /// of a nested value are named `outer.inner`. Throws if the value has no members.
    public init(encoding value: some Encodable) throws { items = try FormEncoder.items(of: value) }

    public init(_ items: [Item]) { self.items = items }

    public var isEmpty: Bool { items.isEmpty }

    /// Adds a parameter for each of the value's texts.
    public mutating func append(_ name: String, _ value: (any QueryValue)?) {
        for text in value?.queryTexts ?? [] { items.append(Item(name: name, value: text)) }
    }

    /// Adds a parameter for the raw value of a case.
    public mutating func append<Value: RawRepresentable>(_ name: String, _ value: Value?)
    where Value.RawValue: QueryValue {
        append(name, value?.rawValue)
    }

    /// Appends all parameters of `other`.
    public mutating func append(_ other: QueryItems) { items += other.items }

    public static func + (left: QueryItems, right: QueryItems) -> QueryItems { QueryItems(left.items + right.items) }

    /// The parameters as a query: percent-encoded, a space as `%20`.
    public var query: String { text { PercentText.text($0) } }

    /// The parameters as `application/x-www-form-urlencoded`: a space as `+`.
    public var form: String { text { PercentText.form($0) } }

    private func text(_ encoded: (String) -> String) -> String {
        var text = ""
        for item in items {
            if !text.isEmpty { text += "&" }
            text += encoded(item.name)
            text += "="
            text += encoded(item.value)
        }
        return text
    }
}

extension QueryItems: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, (any QueryValue)?)...) {
        for (name, value) in elements { append(name, value) }
    }
}
