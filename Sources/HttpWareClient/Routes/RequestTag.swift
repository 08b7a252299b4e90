/// Says what a request is for, so that all of its kind can be found: `["images"]`.
public struct RequestTag: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let text: String

    public init(_ text: String) { self.text = text }
    public init(stringLiteral value: String) { text = value }
    public var description: String { text }
}
