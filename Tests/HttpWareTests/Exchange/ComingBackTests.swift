import HttpWareTesting
import Testing

@testable import HttpWare

/// A client that is found gone inside a call of the driver: the exchange ends there, and the driver must not continue.
@Suite struct ComingBackTests {
    private let notes = Notes()

    private func stage(
        _ middlewares: [any Ware] = [], after postwares: [any Ware] = [],
        total: Duration? = nil
    ) throws -> DriverStage {
        var timeouts = UpstreamService.Timeouts()
        timeouts.total = total
        return try DriverStage(
            .of([Observing(notes: notes)] + middlewares, postwares + [OnResponse.noting("last", in: notes)]),
            timeouts: timeouts)
    }

    /// The client is found gone when the response from upstream is given up.
    private static func leaveWhenGivenUp(_ stage: DriverStage) {
        stage.stream.whenGivenUp = { [weak stage] in stage?.driver.clientLeft() }
    }

    /// The client is found gone when that part of the response is sent.
    private static func leave(_ stage: DriverStage, at part: String) {
        stage.client.seen = { [weak stage] in if $0 == part { stage?.driver.clientLeft() } }
    }

    private func expectLeft(_ stage: DriverStage) async {
        #expect(notes.all == ["/ client left -"])
        await stage.step { stage in
            #expect(stage.driver.phase == .ended)
            #expect(stage.client.ends == 0 && stage.client.cuts == 0)
            #expect(!stage.driver.totalTimer.isSet && stage.driver.pauseTimer?.isSet != true)
        }
    }

    @Test func `no ware is asked behind one that failed when the client left meanwhile`() async throws {
        let stage = try stage(after: [OnResponse { _, _ in throw Trouble() }])
        await stage.begin()
        await stage.step { stage in
            Self.leaveWhenGivenUp(stage)
            stage.stream.respond(text: "never")
            #expect(stage.client.response == nil)
        }
        await expectLeft(stage)
    }

    @Test func `no ware is asked behind one that replaced the response when the client left meanwhile`() async throws {
        let source = CountingSource()
        let stage = try stage(after: [
            OnResponse { _, _ in .replace(with: HttpResponse(.ok, source: source, length: 3)) }
        ])
        await stage.begin()
        await stage.step { stage in
            Self.leaveWhenGivenUp(stage)
            stage.stream.respond(text: "never")
            #expect(stage.client.response == nil)
        }
        await expectLeft(stage)
        #expect(source.cancels.all == ["cancelled"])
    }

    @Test func `no response of ours is made when the client left while the request was given up`() async throws {
        let stage = try stage(total: .seconds(1))
        await stage.begin()
        await stage.step { Self.leaveWhenGivenUp($0) }
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.client.response == nil })
        await expectLeft(stage)
    }

    @Test func `no head is sent when the client left while the origin's content was given up`() async throws {
        let stage = try stage(after: [
            OnResponse { response, _ in
                response.content = .text("mine")
                return .pass
            }
        ])
        await stage.begin()
        await stage.step { stage in
            Self.leaveWhenGivenUp(stage)
            stage.stream.respond(extent: .length(9))
            #expect(stage.client.response == nil)
        }
        #expect(notes.all == ["last 200 by upstream", "/ client left -"])
        #expect(await stage.step { $0.driver.phase } == .ended)
    }

    @Test func `no tunnel is opened for a client that left while its head was sent`() async throws {
        let stage = try stage()
        await stage.begin()
        await stage.step { stage in
            Self.leave(stage, at: "head")
            stage.stream.respond(.switchingProtocols, extent: .unknown)
            #expect(stage.client.tunnel == nil)
            #expect(stage.driver.phase == .ended)
        }
    }

    @Test func `no deadline stays behind a client that left while it was asked for content`() async throws {
        let stage = try stage(
            [OnBoth.replaying(.unauthorized)], total: .seconds(1))
        await stage.begin(.post, extent: .length(3), expects: true)
        await stage.step { stage in
            Self.leave(stage, at: "100")
            stage.stream.respond(.unauthorized, extent: .length(4))
        }
        await expectLeft(stage)
    }

    @Test func `no timer stays behind a client that left while filtered content was sent`() async throws {
        let stage = try stage(after: [
            OnResponse { _, exchange in
                exchange.responseFilters.append(HoldingBack())
                return .pass
            }
        ])
        await stage.begin()
        await stage.step { stage in
            Self.leave(stage, at: "abc")
            stage.stream.respond(extent: .unknown)
            stage.stream.send("abc")
            #expect(stage.driver.phase == .ended && stage.driver.pauseTimer?.isSet != true)
        }
    }
}

/// A source that notes when its content is not needed any more.
private final class CountingSource: ContentSource {
    let cancels = Notes()

    func next(_ feed: ContentFeed) { feed.finish() }
    func cancelled() { cancels.add("cancelled") }
}

/// Passes content on, and may hold some back.
private final class HoldingBack: ContentFilter {
    var holdsBack: Bool { true }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) { output += input }
}
