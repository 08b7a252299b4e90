import Testing

@testable import HttpWare

@Suite struct EndedClientTests {
    private func facts(
        broken: Bool = false, response: Bool = false, blocked: Bool = false, sent: Int = 0
    ) -> EndedClient.Facts {
        EndedClient.Facts(hasBroken: broken, hasResponse: response, isBlocked: blocked, sent: sent)
    }

    @Test func `a client that waits for its response is probed, and left alone in between`() {
        var state = EndedClient.State(hadResponse: false)
        #expect(state.next(facts()) == .probe(.milliseconds(250)))
        #expect(state.next(facts()) == .wait(.seconds(10)))
        #expect(state.next(facts()) == .probe(.milliseconds(250)))
    }

    @Test func `a client that answers with a reset has left`() {
        var state = EndedClient.State(hadResponse: false)
        _ = state.next(facts())
        #expect(state.next(facts(broken: true)) == .leave)
        #expect(state.next(facts(broken: true, response: true)) == .leave)
    }

    @Test func `a response that began after the end of the client's side may pause`() {
        var state = EndedClient.State(hadResponse: false)
        for _ in 0..<3 { #expect(state.next(facts(response: true, sent: 7)) == .wait(.seconds(1))) }
    }

    @Test func `a response that had begun before goes on as long as it makes progress`() {
        var state = EndedClient.State(hadResponse: true)
        #expect(state.next(facts(response: true, sent: 7)) == .wait(.seconds(1)))
        #expect(state.next(facts(response: true, sent: 8)) == .wait(.seconds(1)))
        #expect(state.next(facts(response: true, blocked: true, sent: 8)) == .wait(.seconds(1)))
        #expect(state.next(facts(response: true, sent: 8)) == .leave)
    }
}
