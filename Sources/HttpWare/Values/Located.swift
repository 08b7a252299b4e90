/// A value and the place where it was written.
public struct Located<Value: Sendable>: Sendable {
    /// What was read.
    public var value: Value
    /// Where it is written.
    public var location: SourceLocation

    /// Makes one of both.
    public init(_ value: Value, at location: SourceLocation) {
        self.value = value
        self.location = location
    }
}
