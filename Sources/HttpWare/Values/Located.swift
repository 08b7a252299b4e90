/// A value and its place.
public struct Located<Value: Sendable>: Sendable {
    /// The value.
    public var value: Value
    /// The place where it was written.
    public var location: SourceLocation

    /// Makes a value with its place.
    public init(_ value: Value, at location: SourceLocation) {
        self.value = value
        self.location = location
    }
}
