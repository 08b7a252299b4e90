/// A label that finds all requests with the same purpose: `["images"]`.
public struct RequestTag: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let text: String

    public init(_ text: String) { self.text = text }
    public init(stringLiteral value: String) { text = value }
    public var description: String { text }
}
