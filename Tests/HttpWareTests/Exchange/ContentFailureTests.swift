import Testing

@testable import HttpWare

@Suite struct ContentFailureTests {
    @Test(arguments: [
        (GatewayError(.upstream, .responseIncomplete, "x") as any Error, GatewayError.Fault.responseIncomplete),
        (ContentDecoder.Fault(description: "x"), .responseMalformed), (Trouble(), .wareFailed),
    ])
    func `a response's filter fails with one error, whatever the way of the content`(
        error: any Error, fault: GatewayError.Fault
    ) {
        let failure = GatewayError.ofResponseFilter(error)
        #expect(failure.side == .upstream && failure.fault == fault)
        #expect(failure.status == .badGateway)
    }

    @Test(arguments: [
        (GatewayError(.downstream, .contentTooLarge, "x") as any Error, HttpStatus.contentTooLarge),
        (ContentDecoder.Fault(description: "x"), .badRequest), (Trouble(), .internalServerError),
    ])
    func `a request's filter keeps its own error`(error: any Error, status: HttpStatus) {
        #expect(GatewayError.ofRequestFilter(error).status == status)
    }
}
