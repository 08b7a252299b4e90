import Testing

@testable import HttpWare

@Suite struct ExchangeProgressTests {
    @Test(arguments: [[0], [63], [64], [0, 63, 64, 65, 1000], []])
    func `a skipped ware is found by its index, up to 64 and beyond`(indices: [Int]) {
        var skipped = SkippedWares()
        for index in indices { skipped.insert(index) }
        for index in [0, 1, 62, 63, 64, 65, 999, 1000] {
            #expect(skipped.contains(index) == indices.contains(index), "\(index)")
        }
    }

    @Test(arguments: [0, 1, 63, 64, 65, 70, 71])
    func `wares that the request passes again are not skipped any more`(index: Int) {
        var skipped = SkippedWares()
        for index in 0...70 { skipped.insert(index) }
        skipped.forget(from: index)
        for other in 0...71 { #expect(skipped.contains(other) == (other < index && other <= 70), "\(other)") }
    }

    @Test func `a new request has none of the values of the request before`() {
        var progress = RequestProgress()
        #expect(progress.trailers == nil && progress.given == nil && progress.filtered == nil)
        progress.trailers = ["X-Sum": "1"]
        progress.given = [1, 2]
        progress.skipped.insert(70)
        #expect(progress.trailers?["X-Sum"] == "1" && progress.given == [1, 2])
        progress.trailers = nil
        #expect(progress.trailers == nil && progress.given == [1, 2])
        progress = RequestProgress()
        #expect(progress.trailers == nil && progress.given == nil && !progress.skipped.contains(70))
    }

    @Test func `a new response has none of the values of the response before`() {
        var progress = ResponseProgress()
        #expect(progress.halfIndex == -1 && progress.halfFloor == -1 && progress.postIndex == 0)
        progress.trailers = ["X-Sum": "1"]
        progress.collected = [1]
        progress = ResponseProgress()
        #expect(progress.trailers == nil && progress.collected.isEmpty && progress.path == nil)
    }

    @Test func `the attempts of a call are numbered behind those before, and its stream and endpoint lead`() {
        var call = UpstreamCall(behind: 7)
        #expect(call.attempts.made == 7)
        #expect(call.stream == nil && call.endpoint == nil && call.connections == nil && call.path == nil)
        let stream = ScriptedStream(Endpoint(host: "192.0.2.1", port: 80))
        call.stream = stream
        call.endpoint = stream.endpoint
        #expect(call.attempts.leading.stream === stream && call.attempts.leading.endpoint === stream.endpoint)
        call = UpstreamCall(behind: call.attempts.made)
        #expect(call.stream == nil && call.endpoint == nil)
    }
}
