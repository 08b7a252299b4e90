import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct GatewayResponseTests {
    private func detail(_ response: HttpResponse) throws -> String {
        let detail = try JsonValue(response.content.bytes ?? [])["detail"]
        return detail?.string ?? ""
    }

    @Test(arguments: GatewayError.Fault.allCases)
    func `a response has the status, the fault and the form of problem details`(fault: GatewayError.Fault) throws {
        let error = GatewayError(.gateway, fault, "the reason")
        let response = GatewayResponse.make(for: error)
        #expect(response.status == error.status)
        #expect(response.fields[.contentType] == "application/problem+json")
        #expect(response.fields[.proxyStatus] == "httpware; error=\(error.proxyStatusName)")
        #expect(try detail(response) == "the reason")
        #expect((response.fields[.allow] != nil) == (response.status == .methodNotAllowed))
        #expect((response.fields[.retryAfter] == "1") == (response.status == .serviceUnavailable))
    }

    @Test(arguments: [
        (GatewayError.Fault.connectionRefused, "the server behind this host cannot be reached"),
        (.dnsError, "the server behind this host cannot be reached"),
        (.responseTimeout, "the server behind this host took too long"),
        (.connectionLimitReached, "the server behind this host takes no more requests at the moment"),
        (.responseMalformed, "the server behind this host gave no valid answer"),
        (.tlsCertificateError, "the server behind this host gave no valid answer"),
    ])
    func `the reason of an error upstream is hidden, and the fault is told`(
        fault: GatewayError.Fault, text: String
    ) throws {
        let response = GatewayResponse.make(for: GatewayError(.upstream, fault, "10.0.0.7:5432 refused"))
        #expect(try detail(response).contains(text))
        #expect(response.content.text?.contains("10.0.0.7") == false)
    }

    @Test(arguments: [
        (GatewayError.Fault.tlsCertificateError, true), (.tlsProtocolError, true), (.tlsAlertReceived, true),
        (.proxyRefused, true), (.connectionRefused, false), (.responseMalformed, false),
    ])
    func `the client of a forward proxy learns a fault of TLS or of the next proxy`(
        fault: GatewayError.Fault, isTold: Bool
    ) throws {
        let response = GatewayResponse.make(for: GatewayError(.upstream, fault, "the reason"), isForward: true)
        #expect(try (detail(response) == "the reason") == isTold)
    }

    @Test func `the status for lateness replaces 504 only`() {
        let late = GatewayError(.upstream, .responseTimeout, "late")
        #expect(GatewayResponse.make(for: late, late: .serviceUnavailable).status == .serviceUnavailable)
        #expect(GatewayResponse.make(for: late, late: .serviceUnavailable).fields[.retryAfter] == "1")
        let refused = GatewayError(.upstream, .connectionRefused, "refused")
        #expect(GatewayResponse.make(for: refused, late: .serviceUnavailable).status == .badGateway)
    }

    @Test func `the answer to TRACE is the request as received, without secret fields (RFC 9110 §9.3.8)`() {
        var request = HttpRequest.make(
            .trace, "/a?b=1",
            fields: [
                "Host": "a.test", "Authorization": "Bearer s3cret", "Cookie": "s3cret", "Proxy-Authorization": "s3cret",
                "X-Own": "1",
            ])
        request.fields.receivedCount = request.fields.lines.count
        let response = GatewayResponse.trace(request)
        #expect(response.status == .ok && response.fields[.contentType] == "message/http")
        #expect(response.content.text == "TRACE /a?b=1 HTTP/1.1\r\nHost: a.test\r\nX-Own: 1\r\n\r\n")
    }

    @Test func `the answer to OPTIONS lists the methods (RFC 9110 §9.3.7)`() {
        let response = GatewayResponse.options()
        #expect(response.status == .ok && response.fields[.allow]?.contains("PATCH") == true)
        #expect(response.content.isEmpty)
    }
}
