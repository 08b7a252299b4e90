import HttpWareTesting
import Testing

@testable import HttpWare

/// The content of a source as a stream, without a driver. `ContentSourceTests` shows the same in an exchange.
@Suite struct ContentStreamTests {
    /// A source that counts how often it is asked, and answers as the test says.
    ///
    /// Unchecked: used on the thread of the test, or on the loop of a driver.
    private final class CountingSource: ContentSource, @unchecked Sendable {
        private(set) var asked = 0
        private(set) var cancellations = 0
        private(set) var feed: ContentFeed?
        /// The answer to each question; `nil` answers later.
        var ready: [UInt8]?

        func next(_ feed: ContentFeed) {
            asked += 1
            self.feed = feed
            if let ready { feed.supply(ready) }
        }
        func cancelled() { cancellations += 1 }
    }

    private let stage: StreamStage
    private let source = CountingSource()

    init() throws { stage = try StreamStage() }

    private var events: [String] { stage.recorder.events }

    private func stream(_ extent: HttpContent.Extent) -> ContentStream {
        ContentStream(source, extent: extent, transport: stage.transport, receiver: stage.recorder)
    }

    private func supply(_ text: String) {
        source.feed?.supply(Array(text.utf8))
        stage.hand.turn()
    }

    private func finish() {
        source.feed?.finish()
        stage.hand.turn()
    }

    @Test func `a source is first asked when the stream is resumed, and again after each piece`() {
        let stream = stream(.unknown)
        #expect(source.asked == 0)
        stream.resume()
        stream.resume()
        #expect(source.asked == 1)
        supply("a")
        supply("")
        supply("b")
        #expect(source.asked == 4)
        finish()
        #expect(events == ["a", "b", "end"])
        stream.cancel()
        #expect(source.cancellations == 0)
    }

    @Test func `a paused stream passes the piece that it asked for, and asks for no further one`() {
        let stream = stream(.unknown)
        stream.resume()
        stream.pause()
        supply("a")
        #expect(events == ["a"] && source.asked == 1)
        stream.resume()
        #expect(source.asked == 2)
    }

    @Test(arguments: [
        (HttpContent.Extent.length(3), ["abc"], ["abc", "end"]), (.length(3), ["a", "bc"], ["a", "bc", "end"]),
        (.length(3), ["ab", "cd"], ["ab", "failed"]), (.length(3), ["ab"], ["ab", "failed"]),
        (.length(0), [], ["end"]), (.none, [], ["end"]), (.none, ["a"], ["failed"]), (.unknown, ["a"], ["a", "end"]),
    ])
    func `a source brings exactly the length that it states`(
        extent: HttpContent.Extent, pieces: [String], expected: [String]
    ) {
        let stream = stream(extent)
        stream.resume()
        for piece in pieces { supply(piece) }
        finish()
        #expect(events == expected)
        #expect(source.cancellations == (expected.last == "failed" ? 1 : 0))
        if let failure = stage.recorder.failure { #expect(failure.fault == .wareFailed && failure.side == .gateway) }
    }

    @Test func `a piece that was not asked for fails the stream`() {
        let stream = stream(.unknown)
        stream.resume()
        stream.pause()
        supply("a")
        supply("b")
        #expect(events == ["a", "failed"] && source.cancellations == 1)
    }

    @Test func `the reason of a source that fails is that of the stream`() {
        let stream = stream(.unknown)
        stream.resume()
        source.feed?.fail("the disk is gone")
        stage.hand.turn()
        #expect(stage.recorder.failure?.reason == "the disk is gone")
        stream.cancel()
        #expect(source.cancellations == 0)
    }

    @Test(arguments: [(64 << 10, 16), (300 << 10, 4), (1 << 10, 64), (0, 64)])
    func `a source that always answers gives others a turn after 1 MiB or 64 pieces`(
        size: Int, pieces: Int
    ) async throws {
        let source = CountingSource()
        source.ready = Array(repeating: 7, count: size)
        let driven = try DriverStage([OnRequest { _, _ in .abort(with: HttpResponse(.ok, source: source)) }])
        await driven.begin()
        #expect(await driven.step { [source.asked, $0.client.content.count] } == [pieces, pieces * size])
        await driven.advance(by: .nanoseconds(1))
        #expect(await driven.step { [source.asked, $0.client.content.count] } == [2 * pieces, 2 * pieces * size])
        await driven.step { $0.driver.clientLeft() }
        await driven.advance(by: .seconds(1))
        #expect(await driven.step { _ in [source.asked, source.cancellations] } == [2 * pieces, 1])
    }

    @Test(arguments: [false, true])
    func `a stream that is given up cancels its source once, and drops a late piece`(isDiscarded: Bool) {
        let stream = stream(.length(5))
        stream.resume()
        isDiscarded ? stream.discard() : stream.cancel()
        stream.cancel()
        supply("late")
        finish()
        stream.resume()
        #expect(events.isEmpty && source.cancellations == 1 && source.asked == 1)
    }

    @Test func `a receiver that ends the exchange with a piece gets nothing more`() {
        source.ready = [1]
        let stream = stream(.unknown)
        stage.recorder.whenContent = { stream.cancel() }
        stream.resume()
        stage.hand.advance(by: .seconds(1))
        #expect(stage.recorder.contentCount == 1 && source.asked == 1 && source.cancellations == 1)
    }
}
