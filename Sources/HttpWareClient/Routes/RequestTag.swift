/// A purpose of a request, by which all requests of a kind can be found: `["images"]`.
public struct RequestTag: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let text: String

    public init(_ text: String) { self.text = text }
    public init(stringLiteral value: String) { text = value }
    public var description: String { text }
}
