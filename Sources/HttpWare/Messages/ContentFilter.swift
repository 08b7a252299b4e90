/// Sees content as it passes and may change it. One instance serves one message.
public protocol ContentFilter: AnyObject {
    /// Whether the content keeps its length: then `Content-Length` stays.
    var keepsLength: Bool { get }
    /// Whether the content that it makes is what later wares see that need all of it. For a filter that is added first.
    var comesFirst: Bool { get }
    /// Takes a piece of content and appends what goes on in its place. The bytes are valid during the call only. Throwing
    /// cuts the message off.
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws
    /// Whether it holds content back that it could bring at once: then it is asked to when no more comes for a while.
    var holdsBack: Bool { get }
    /// No more came for a while: appends what is held back.
    func flush(into output: inout [UInt8]) throws
    /// The content ended: appends what is left.
    func finish(into output: inout [UInt8]) throws
}

extension ContentFilter {
    public var keepsLength: Bool { false }
    public var comesFirst: Bool { false }
    public var holdsBack: Bool { false }
    public func flush(into output: inout [UInt8]) throws {}
    public func finish(into output: inout [UInt8]) throws {}
}
