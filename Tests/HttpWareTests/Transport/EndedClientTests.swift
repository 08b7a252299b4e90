import Testing

@testable import HttpWare

@Suite struct EndedClientTests {
    private func facts(
        broken: Bool = false, response: Bool = false, blocked: Bool = false, sent: Int = 0
    ) -> EndedClient.Facts {
        EndedClient.Facts(hasBroken: broken, hasResponse: response, isBlocked: blocked, sent: sent)
    }

    private func state(hadResponse: Bool = false, after time: Duration = .zero) -> EndedClient.State {
        EndedClient.State(hadResponse: hadResponse, after: time)
    }

    @Test(arguments: [(0, 1000), (100, 1000), (101, 0), (60_000, 0)])
    func `a client that ends its side later than its request is probed at once`(after: Int, first: Int) {
        #expect(state(after: .milliseconds(after)).first == .milliseconds(first))
        #expect(state(hadResponse: true, after: .milliseconds(after)).first == .seconds(1))
    }

    @Test func `a client that waits for its response is probed, looked at twice, and left alone in between`() {
        var state = state()
        for _ in 0..<3 {
            #expect(state.next(facts()) == .probe(.milliseconds(25)))
            #expect(state.next(facts()) == .wait(.milliseconds(225)))
            #expect(state.next(facts()) == .wait(.seconds(10)))
        }
    }

    @Test(arguments: 1...3)
    func `a client that answers with a reset has left`(looks: Int) {
        var state = state()
        for _ in 0..<looks { _ = state.next(facts()) }
        #expect(state.next(facts(broken: true)) == .leave)
        #expect(state.next(facts(broken: true, response: true)) == .leave)
    }

    @Test func `a response that began after the end of the client's side may pause`() {
        var state = state()
        for _ in 0..<3 { #expect(state.next(facts(response: true, sent: 7)) == .wait(.seconds(1))) }
    }

    @Test func `a response that had begun before goes on as long as it makes progress`() {
        var state = state(hadResponse: true)
        #expect(state.next(facts(response: true, sent: 7)) == .wait(.seconds(1)))
        #expect(state.next(facts(response: true, sent: 8)) == .wait(.seconds(1)))
        #expect(state.next(facts(response: true, blocked: true, sent: 8)) == .wait(.seconds(1)))
        #expect(state.next(facts(response: true, sent: 8)) == .leave)
    }
}
