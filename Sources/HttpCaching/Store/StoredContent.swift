public import HttpWare

/// The content of a stored response.
public enum StoredContent: Sendable {
    /// In memory.
    case bytes([UInt8])
    /// Loaded when it is sent.
    case elsewhere(any StoredContentReader)

    /// The number of bytes.
    public var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .elsewhere(let reader): reader.count
        }
    }

    /// The bytes that it takes where it is.
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

/// Loads stored content that is not in memory, any part of it, for any number of clients at once.
public protocol StoredContentReader: AnyObject, Sendable {
    /// How many bytes it is.
    var count: Int { get }
    /// Brings this part, which lies within the content. A source that finds the content gone or damaged fails, so that the
    /// client does not take what it has for whole.
    func source(of part: Range<Int>) -> any ContentSource
    /// All of it, where it is in memory.
    var inMemory: [UInt8]? { get }
    /// The bytes that it takes where it is.
    var size: Int { get }
}

extension StoredContentReader {
    public var inMemory: [UInt8]? { nil }
    public var size: Int { count }
}
