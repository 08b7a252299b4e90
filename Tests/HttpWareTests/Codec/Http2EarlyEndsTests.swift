import Testing

@testable import HttpWare

/// RFC 9113 §8.1: a server that answers before the request has ended.
@Suite struct Http2EarlyEndsTests {
    private let end = SessionEnd(.server)
    private static let mebibyte = 1 << 20

    /// A stream with a response; `rest` is the announced rest of its request.
    private func stream(rest: Int? = nil, takesRest: Bool = false) -> TestStream {
        let stream = TestStream(session: end.session)
        stream.contentLeft = rest
        stream.takesRest = takesRest
        return stream
    }

    /// The early ends of these streams, whose responses have left at this time.
    private func ends(_ streams: TestStream..., at now: Int64 = 0) -> Http2EarlyEnds {
        var ends = Http2EarlyEnds()
        for stream in streams { ends.append(stream) }
        _ = ends.takePing(now: now) { _ in true }
        return ends
    }

    @Test func `without an early response there is nothing to do`() {
        var ends = Http2EarlyEnds()
        #expect(ends.takePing(now: 0) { _ in true } == nil)
        #expect(ends.earliestDue == .max && ends.due(.max).isEmpty && ends.acknowledged(.max).isEmpty)
        let other = stream()
        #expect(ends.discard(.max, of: other) == true)
        ends.remove(other)
        #expect(other.endsEarly == .no)
    }

    @Test func `a PING follows as soon as the response has left, and once only`() {
        var ends = Http2EarlyEnds()
        let stream = stream()
        ends.append(stream)
        #expect(stream.endsEarly == .leaving)
        #expect(ends.takePing(now: 5) { _ in false } == nil)
        #expect(stream.endsEarly == .leaving && ends.earliestDue == .max)
        #expect(ends.takePing(now: 7) { _ in true } == 1)
        #expect(stream.endsEarly == .left && ends.earliestDue == 1_000_000_007)
        #expect(ends.takePing(now: 9) { _ in true } == nil)
    }

    @Test func `a request that ended meanwhile is not reset`() {
        var ends = Http2EarlyEnds()
        let stream = stream()
        ends.append(stream)
        stream.hasEndedInput = true
        #expect(ends.takePing(now: 5) { _ in true } == nil)
        #expect(stream.endsEarly == .no && ends.earliestDue == .max)
    }

    @Test func `an acknowledgement resets the streams of its PING and of earlier ones`() {
        let (first, second, third) = (stream(), stream(), stream())
        var ends = ends(first, second)
        ends.append(third)
        #expect(ends.takePing(now: 1) { _ in true } == 2)
        #expect(ends.acknowledged(0).isEmpty)
        #expect(ends.acknowledged(1).map { $0 === first || $0 === second } == [true, true])
        #expect(ends.acknowledged(2).count == 3)
    }

    @Test(arguments: [
        (nil as Int?, true, false), (0, true, false), (1 << 20, true, false), (1 << 20 + 1, true, true),
        (0, false, true), (nil, false, true),
    ])
    func `a rest of up to 1 MiB is awaited after a success`(rest: Int?, takesRest: Bool, isReset: Bool) {
        let ends = ends(stream(rest: rest, takesRest: takesRest))
        #expect(ends.acknowledged(1).count == (isReset ? 1 : 0))
    }

    @Test func `the rest and its discarded part count together`() {
        let stream = stream(rest: 500_000, takesRest: true)
        var ends = ends(stream)
        #expect(ends.discard(Self.mebibyte - 500_000, of: stream) == true)
        #expect(ends.acknowledged(1).isEmpty)
        #expect(ends.discard(1, of: stream) == true)
        #expect(ends.acknowledged(1).count == 1)
    }

    @Test func `a stream discards up to 1 MiB`() {
        let stream = stream()
        var ends = ends(stream)
        #expect(ends.discard(Self.mebibyte, of: stream) == true)
        #expect(ends.discard(1, of: stream) == false)
    }

    @Test func `all streams together discard up to 4 MiB, and an ended stream does not count`() {
        let streams = (0..<5).map { _ in stream() }
        var ends = ends(streams[0], streams[1], streams[2], streams[3], streams[4])
        for stream in streams.prefix(4) { #expect(ends.discard(Self.mebibyte, of: stream) == true) }
        #expect(ends.discard(1, of: streams[4]) == false)
        ends.remove(streams[0])
        #expect(streams[0].endsEarly == .no)
        #expect(ends.discard(1, of: streams[4]) == true)
    }

    @Test func `each stream has a second from its PING`() {
        let (first, second) = (stream(), stream())
        var ends = ends(first, at: 10)
        ends.append(second)
        _ = ends.takePing(now: 20) { _ in true }
        #expect(ends.due(1_000_000_009).isEmpty)
        #expect(ends.due(1_000_000_010).map { $0 === first } == [true])
        #expect(ends.due(1_000_000_020).count == 2)
        ends.remove(first)
        #expect(ends.earliestDue == 1_000_000_020 && ends.due(1_000_000_019).isEmpty)
        ends.remove(second)
        #expect(ends.earliestDue == .max && ends.due(.max).isEmpty)
    }

    @Test func `a stream that ends before its response has left is forgotten`() {
        var ends = Http2EarlyEnds()
        let stream = stream()
        ends.append(stream)
        ends.remove(stream)
        #expect(stream.endsEarly == .no)
        #expect(ends.takePing(now: 0) { _ in true } == nil)
    }

    @Test func `only as many acknowledgements are expected as PINGs were sent`() {
        var ends = Http2EarlyEnds()
        #expect(ends.expectsAcknowledgement() == false)
        #expect(ends.nextPing() == 1)
        #expect(ends.nextPing() == 2)
        #expect((0..<3).map { _ in ends.expectsAcknowledgement() } == [true, true, false])
    }
}
