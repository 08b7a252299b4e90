public import HttpWare

/// The content of a stored response.
public enum StoredContent: Sendable {
    /// In memory.
    case bytes([UInt8])
    /// Elsewhere, and loaded when it is sent.
    case elsewhere(any StoredContentReader)

    /// The number of bytes.
    public var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .elsewhere(let reader): reader.count
        }
    }

    /// The memory that the content takes, in bytes.
    var size: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .elsewhere(let reader): reader.size
        }
    }

    /// The bytes, if they are in memory; nothing is read from a disk.
    public var inMemory: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .elsewhere(let reader): reader.inMemory
        }
    }

    /// All bytes, loaded if needed, on the loop of the calling task; `nil` if there are more than `most`, or if they
    /// cannot be read.
    public func read(atMost most: Int) async -> [UInt8]? {
        guard count <= most else { return nil }
        if let inMemory { return inMemory }
        guard case .elsewhere(let reader) = self else { return nil }
        return await reader.source(of: 0..<count).read(atMost: most)
    }
}

/// Loads any part of stored content that is not in memory, for any number of clients at once.
public protocol StoredContentReader: AnyObject, Sendable {
    /// The length of the content in bytes.
    var count: Int { get }
    /// A source of this part, which must lie within the content. If the content is gone or damaged, the source fails, so
    /// that the client does not take the response for complete.
    func source(of part: Range<Int>) -> any ContentSource
    /// The whole content, if it is in memory.
    var inMemory: [UInt8]? { get }
    /// The memory that the content takes, in bytes.
    var size: Int { get }
}

extension StoredContentReader {
    public var inMemory: [UInt8]? { nil }
    public var size: Int { count }
}
