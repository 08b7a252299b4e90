/// Why content cannot be decoded to the requested value.
public struct DecodingProblem: Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// The content, or one of its values, is invalid.
        case invalid
        /// A required value is missing.
        case missing
    }

    public let kind: Kind
    /// The place in the content, such as `items[3].name`; empty for the whole content.
    public let path: String
    /// The decoder's explanation.
    public let reason: String
    /// The first 200 bytes of the content, as text.
    public let excerpt: String

    public var description: String {
        (path.isEmpty ? "" : "at \(path): ") + "\(reason); the content begins \(excerpt.debugDescription)"
    }

    /// The most bytes of the content that are shown.
    static let shown = 200

    /// A problem as the client reports it, for tests.
    public init(kind: Kind, path: String, reason: String = "made by a test", excerpt: String = "") {
        self.kind = kind
        self.path = path
        self.reason = reason
        self.excerpt = excerpt
    }

    init(_ error: any Error, content: [UInt8]) {
        excerpt = String(decoding: content.prefix(DecodingProblem.shown), as: UTF8.self)
        switch error as? DecodingError {
        case .keyNotFound(let key, let context):
            kind = .missing
            path = DecodingProblem.text(context.codingPath + [key])
            reason = "there is no \(key.stringValue)"
        case .valueNotFound(let type, let context):
            kind = .missing
            path = DecodingProblem.text(context.codingPath)
            reason = "it is null, not \(type)"
        case .typeMismatch(let type, let context):
            kind = .invalid
            path = DecodingProblem.text(context.codingPath)
            reason = "it is not \(type)"
        case .dataCorrupted(let context):
            kind = .invalid
            path = DecodingProblem.text(context.codingPath)
            reason = context.debugDescription
        default:
            kind = .invalid
            path = ""
            reason = "\(error)"
        }
    }

    private static func text(_ path: [any CodingKey]) -> String {
        var text = ""
        for key in path {
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += (text.isEmpty ? "" : ".") + key.stringValue
            }
        }
        return text
    }
}
