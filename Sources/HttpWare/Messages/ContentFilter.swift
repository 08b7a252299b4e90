/// Sees content as it passes, and may change it. One instance serves one message.
public protocol ContentFilter: AnyObject {
    /// Whether the content keeps its length, so that `Content-Length` stays.
    var keepsLength: Bool { get }
    /// Whether later wares that need the whole content see this filter's output. For a filter that is added first.
    var comesFirst: Bool { get }
    /// Takes a piece of content and appends the output for it. The bytes are valid during the call only. Throwing
    /// cuts the message off.
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws
    /// Whether the filter holds content that it could release at once: then `flush` is called when the content pauses.
    var holdsBack: Bool { get }
    /// The content pauses: appends the held content.
    func flush(into output: inout [UInt8]) throws
    /// The content has ended: appends the rest.
    func finish(into output: inout [UInt8]) throws
}

extension ContentFilter {
    public var keepsLength: Bool { false }
    public var comesFirst: Bool { false }
    public var holdsBack: Bool { false }
    public func flush(into output: inout [UInt8]) throws {}
    public func finish(into output: inout [UInt8]) throws {}
}
