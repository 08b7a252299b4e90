/// No content: the response type of a route whose content says nothing, and the body type of one that sends none.
public struct Empty: Codable, Sendable, Hashable {
    public init() {}

    /// Whatever the content is, nothing of it is read.
    public init(from decoder: any Decoder) {}

    public func encode(to encoder: any Encoder) throws {
        _ = encoder.container(keyedBy: NoKeys.self)
    }

    private enum NoKeys: CodingKey {}
}
