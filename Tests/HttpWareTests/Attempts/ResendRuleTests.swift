import Testing

@testable import HttpWare

@Suite struct ResendRuleTests {
    private let refused = GatewayError(.upstream, .connectionTerminated, "refused", mayRetry: true, isUnprocessed: true)
    private let closed = GatewayError(.upstream, .connectionTerminated, "closed", mayRetry: true)
    private let begun = GatewayError(.upstream, .responseIncomplete, "begun")
    private let version = GatewayError(
        .upstream, .connectionTerminated, "version", mayRetry: true, isUnprocessed: true, requiresHttp1: true)

    private func facts(_ isIdempotent: Bool = false, content: Bool = true, http1: Bool = true) -> ResendRule.Facts {
        ResendRule.Facts(isIdempotent: isIdempotent, hasContent: content, mayUseHttp1: http1)
    }

    @Test(arguments: [true, false])
    func `a request that is refused unseen goes out again five times, whatever its method`(isIdempotent: Bool) {
        var rule = ResendRule()
        for _ in 0..<5 { #expect(rule.decide(after: refused, facts(isIdempotent)) == .again) }
        #expect(rule.decide(after: refused, facts(isIdempotent)) == .fail)
    }

    @Test func `a connection that closed without a response is followed by one other, for an idempotent request`() {
        var rule = ResendRule()
        #expect(rule.decide(after: closed, facts(false)) == .fail)
        #expect(rule.decide(after: closed, facts(true)) == .onNewConnection)
        #expect(rule.hasRetried)
        #expect(rule.decide(after: closed, facts(true)) == .fail)
    }

    @Test func `refusals do not use up the one further try, nor does it use up them`() {
        var rule = ResendRule()
        #expect(rule.decide(after: refused, facts(true)) == .again)
        #expect(rule.decide(after: closed, facts(true)) == .onNewConnection)
        #expect(rule.decide(after: refused, facts(true)) == .again)
        #expect(rule.decide(after: version, facts(true)) == .byHttp1)
        #expect(rule.decide(after: closed, facts(true)) == .fail)
    }

    @Test func `HTTP_1_1_REQUIRED is followed once, if HTTP/1.1 can carry the request`() {
        var rule = ResendRule()
        #expect(rule.decide(after: version, facts(false, http1: false)) == .fail)
        #expect(rule.decide(after: version, facts(false)) == .byHttp1)
        #expect(rule.decide(after: version, facts(false)) == .fail)
    }

    @Test func `nothing goes out again when a response has begun, or the content is gone`() {
        var rule = ResendRule()
        #expect(rule.decide(after: begun, facts(true)) == .fail)
        for error in [refused, closed, version] {
            #expect(rule.decide(after: error, facts(true, content: false)) == .fail)
        }
        #expect(rule.refusals == 0 && !rule.hasRetried)
    }

    @Test func `a client that tries again by itself is left to it`() {
        var rule = ResendRule()
        rule.leaveToConnection()
        for error in [refused, closed, version] { #expect(rule.decide(after: error, facts(true)) == .fail) }
    }
}
