/// Sees content as it passes, and may change it. One instance serves one message.
///
/// A call does a bounded amount of work. A filter whose output can be much longer than its input, because it decodes content, passes
/// it on in parts: it keeps the rest, says so with `isPending`, and is asked for `more` in later turns of the loop.
public protocol ContentFilter: AnyObject {
    /// Whether the content keeps its length, so that `Content-Length` stays.
    var keepsLength: Bool { get }
    /// Whether later wares that need the whole content see this filter's output. For a filter that is added first.
    var comesFirst: Bool { get }
    /// Takes a piece of content and appends the output for it. The bytes are valid during the call only. Throwing
    /// cuts the message off. A piece may arrive while output is pending: it is then kept for later.
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws
    /// Whether the filter has taken input for which it has further output.
    var isPending: Bool { get }
    /// Appends the next part of the pending output: at most some hundred KiB. Called in later turns of the loop, when that output can
    /// be passed on, until nothing is pending.
    func more(into output: inout [UInt8]) throws
    /// Whether the filter holds content that it could release at once: then `flush` is called when the content pauses.
    var holdsBack: Bool { get }
    /// The content pauses: appends the held content.
    func flush(into output: inout [UInt8]) throws
    /// The content has ended, and no output is pending: appends the rest.
    func finish(into output: inout [UInt8]) throws
}

extension ContentFilter {
    public var keepsLength: Bool { false }
    public var comesFirst: Bool { false }
    public var isPending: Bool { false }
    public func more(into output: inout [UInt8]) throws {}
    public var holdsBack: Bool { false }
    public func flush(into output: inout [UInt8]) throws {}
    public func finish(into output: inout [UInt8]) throws {}
}
