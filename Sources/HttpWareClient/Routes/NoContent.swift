/// No content: the response type of a route without a result, and the body type of a route without a body.
public struct NoContent: Codable, Sendable, Hashable {
    public init() {}

    /// Ignores the content.
    public init(from decoder: any Decoder) {}

    public func encode(to encoder: any Encoder) throws {
        _ = encoder.container(keyedBy: NoKeys.self)
    }

    private enum NoKeys: CodingKey {}
}
