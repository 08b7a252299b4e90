import Testing

@testable import Wares

@Suite struct TraceContextTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let parent = "b7ad6b7169203331"

    private func read(_ text: String) -> TraceContext? { Array(text.utf8).withUnsafeBytes { TraceContext($0) } }

    @Test(arguments: [
        "00", "01", "02", "03", "ff", "fd",
    ])
    func `a sound value is read, and written as version 00 with the flags that are known - W3C Trace Context §3.2.2`(
        flags: String
    ) throws {
        let context = try #require(read("00-\(Self.trace)-\(Self.parent)-\(flags)"))
        let known = (Int(flags, radix: 16) ?? 0) & 3
        #expect(context.isSampled == (known & 1 == 1) && context.isRandom == (known & 2 == 2))
        #expect(context.text == "00-\(Self.trace)-\(Self.parent)-0\(known)")
        #expect(context.traceId == Self.trace)
    }

    @Test(arguments: [
        "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c.b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
        "FE-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ])
    func `an invalid traceparent is ignored - W3C Trace Context §3.2.2`(text: String) { #expect(read(text) == nil) }

    @Test(arguments: ["01", "cc", "fe"], ["", "-", "-what-comes-later"])
    func `a later version is read as far as it is known - W3C Trace Context §3.2.4`(version: String, more: String)
        throws
    {
        let context = try #require(read("\(version)-\(Self.trace)-\(Self.parent)-01\(more)"))
        #expect(context.text == "00-\(Self.trace)-\(Self.parent)-01")
    }

    @Test func `a trace that begins here is random, says so, and is sampled as often as it should be`() throws {
        let traces = (0..<2000).map { _ in TraceContext.makeRoot(sampled: 0.5) }
        #expect(Set(traces.map(\.traceId)).count == 2000 && Set(traces.map(\.parent)).count == 2000)
        // One chance in 10^40 to fail.
        #expect((700...1300).contains(traces.count { $0.isSampled }))
        #expect(traces.allSatisfy { read($0.text) == $0 && $0.isRandom })
        #expect(!TraceContext.makeRoot(sampled: 0).isSampled && TraceContext.makeRoot(sampled: 1).isSampled)
    }

    @Test func `to go on keeps the trace and changes the parent`() {
        let first = TraceContext.makeRoot(sampled: 1)
        let next = first.goingOn()
        #expect(next.traceId == first.traceId && next.parent != first.parent && next.isSampled)
    }
}
