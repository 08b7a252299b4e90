public import FoundationEssentials

/// A type whose values can be query parameters or form fields.
///
/// `nil` adds no parameter. An array adds one for each element.
public protocol QueryValue {
    /// The parameter's values: none, one or more.
    var queryTexts: [String] { get }
}

extension String: QueryValue { public var queryTexts: [String] { [self] } }
extension Substring: QueryValue { public var queryTexts: [String] { [String(self)] } }
extension Bool: QueryValue { public var queryTexts: [String] { [self ? "true" : "false"] } }
extension Int: QueryValue { public var queryTexts: [String] { [String(self)] } }
extension Int64: QueryValue { public var queryTexts: [String] { [String(self)] } }
extension Int32: QueryValue { public var queryTexts: [String] { [String(self)] } }
extension UInt: QueryValue { public var queryTexts: [String] { [String(self)] } }
extension UInt64: QueryValue { public var queryTexts: [String] { [String(self)] } }
extension Double: QueryValue { public var queryTexts: [String] { [description] } }
extension Float: QueryValue { public var queryTexts: [String] { [description] } }

extension Optional: QueryValue where Wrapped: QueryValue {
    public var queryTexts: [String] { self?.queryTexts ?? [] }
}

extension Array: QueryValue where Element: QueryValue {
    public var queryTexts: [String] { flatMap(\.queryTexts) }
}

extension QueryValue where Self: RawRepresentable, RawValue: QueryValue {
    /// The raw value of the case, so that an enumeration of texts needs only `: QueryValue`.
    public var queryTexts: [String] { rawValue.queryTexts }
}

extension UUID: QueryValue { public var queryTexts: [String] { [uuidString] } }
extension Decimal: QueryValue { public var queryTexts: [String] { ["\(self)"] } }
extension Date: QueryValue {
    /// The time in UTC, to the second: `2026-01-31T12:00:00Z`. RFC 3339.
    public var queryTexts: [String] { [formatted(.iso8601)] }
}
