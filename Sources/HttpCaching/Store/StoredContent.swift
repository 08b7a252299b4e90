public import HttpWare

/// The content of a stored response.
public enum StoredContent: Sendable {
    /// At hand.
    case bytes([UInt8])
    /// Brought when it is sent.
    case elsewhere(any StoredContentReader)

    /// How many bytes it is.
    public var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .elsewhere(let reader): reader.count
        }
    }
}

/// Brings stored content that is not in memory, any part of it, to any number of clients at once.
public protocol StoredContentReader: AnyObject, Sendable {
    /// How many bytes it is.
    var count: Int { get }
    /// Brings this part, which lies within the content. A source that finds the content gone or damaged fails, so that the
    /// client does not take what it has for whole.
    func source(of part: Range<Int>) -> any ContentSource
}
