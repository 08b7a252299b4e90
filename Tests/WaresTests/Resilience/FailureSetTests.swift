import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite struct FailureSetTests {
    private func judge(
        _ set: FailureSet, _ responder: Responder, _ status: HttpStatus, _ failure: GatewayError? = nil
    ) throws -> Bool? {
        let exchange = Exchange(loop: try EventLoop(name: "failures"))
        exchange.responder = responder
        exchange.failure = failure
        return set.judge(status, exchange)
    }

    @Test(arguments: GatewayError.Fault.allCases)
    func `a fault counts by its kind, or by the status that it is told with`(fault: GatewayError.Fault) throws {
        let kinds: [GatewayError.Fault: Set<FailureSet.Kind>] = [
            .dnsError: [.connect], .dnsTimeout: [.connect, .timeout], .destinationUnavailable: [.connect],
            .noEndpoint: [.connect],
            .connectionRefused: [.connect], .connectionTimeout: [.connect, .timeout], .tlsProtocolError: [.connect],
            .tlsCertificateError: [.connect], .tlsAlertReceived: [.connect], .connectionTerminated: [.reset],
            .responseIncomplete: [.reset], .responseTimeout: [.timeout], .proxyRefused: [.connect],
        ]
        let failure = GatewayError(.upstream, fault, "x")
        let isService =
            kinds[fault] != nil
            || [.responseMalformed, .responseHeadTooLarge, .responseContentTooLarge, .upgradeFailed].contains(fault)
        for kind in FailureSet.Kind.allCases {
            let judged = try judge(FailureSet([kind]), .gateway, failure.status, failure)
            #expect(judged == (isService ? kinds[fault]?.contains(kind) ?? false : nil), "\(kind)")
        }
        let byStatus = FailureSet(statuses: StatusSet([500...599]))
        #expect(try judge(byStatus, .gateway, failure.status, failure) == (isService ? true : nil))
        let ours = GatewayError(.gateway, fault, "x")
        #expect(try judge(byStatus, .gateway, ours.status, ours) == nil)
    }

    @Test func `only what the origin server answered is judged by its status`() throws {
        let set = FailureSet(statuses: [503])
        #expect(try judge(set, .upstream, .serviceUnavailable) == true)
        #expect(try judge(set, .upstream, .ok) == false)
        #expect(try judge(set, .cache, .serviceUnavailable) == nil)
        #expect(try judge(set, .ware("mock"), .serviceUnavailable) == nil)
    }

    @Test func `words and statuses stand beside each other, and are written as they are read`() throws {
        let members = try ["reset", "5xx", "429"].map { try FailureSet(optionText: $0) }
        let set = FailureSet(union: members)
        #expect(set == FailureSet([.reset], statuses: StatusSet([429...429, 500...599])))
        #expect(set.optionText == "[reset, 429, 5xx]")
        #expect(throws: OptionMistake.self) { try FailureSet(optionText: "Reset") }
    }
}
