public import FoundationEssentials
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
    /// of a nested value are named `outer.inner`. Dates and bytes are written as the strategies say, a `Decimal` in digits, a
    /// `UUID` and a `URL` as their texts. Throws if the value has no members.
    public init(
        encoding value: some Encodable, dates: DateStrategy = .iso8601, data: DataStrategy = .base64
    ) throws {
        items = try FormEncoder.items(of: value, dates, data)
    }

    /// How a `Date` is written.
    public enum DateStrategy: Sendable {
        /// In UTC, to the second: `2026-01-31T12:00:00Z`. RFC 3339.
        case iso8601
        /// The number of seconds since 1970, whole if the date is.
        case secondsSince1970
        /// The whole number of milliseconds since 1970.
        case millisecondsSince1970
        case custom(@Sendable (Date) throws -> String)
    }

    /// How `Data` is written.
    public enum DataStrategy: Sendable {
        /// RFC 4648 §4.
        case base64
        /// With the alphabet for URLs and without padding. RFC 4648 §5.
        case base64Url
        case custom(@Sendable (Data) throws -> String)
    }

    public init(_ items: [Item]) { self.items = items }

    /// Parameters from a dictionary, ordered by name.
    public init(_ values: [String: String]) {
        items = values.sorted { $0 < $1 }.map { Item(name: $0.key, value: $0.value) }
    }

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
