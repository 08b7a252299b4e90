import Testing

@testable import HttpWare

@Suite struct ConnectionAuthenticationTests {
    private func isUsed(_ value: String) -> Bool {
        var value = value
        return value.withUTF8 { ConnectionAuthentication.isUsed(by: UnsafeRawBufferPointer($0)) }
    }

    private func isOffered(_ value: String) -> Bool {
        var value = value
        return value.withUTF8 { ConnectionAuthentication.isOffered(by: UnsafeRawBufferPointer($0)) }
    }

    @Test(arguments: [
        "NTLM TlRMTVNTUAAB", "ntlm x", "Negotiate YIIB", "NEGOTIATE YIIB", "nEgOtIaTe", "Nego2 x", "Kerberos x", "NTLM",
        "Negotiate\tx", " NTLM x",
    ])
    func `credentials of a scheme for connections are recognised`(value: String) { #expect(isUsed(value)) }

    @Test(arguments: [
        "", "Basic TlRM", "Bearer NTLM", "NTLMv2 x", "NTL x", "Negotiat", "Digest username=\"NTLM\"", "xNTLM",
    ])
    func `other credentials authenticate their request alone`(value: String) { #expect(!isUsed(value)) }

    @Test(arguments: [
        "NTLM", "Negotiate", "ntlm", "Basic realm=\"a\", NTLM", "NTLM, Basic realm=\"a\"", "Negotiate,NTLM",
        "Basic realm=\"a, b\",\tNegotiate YIIB", "Digest a=b , , nTLM TlRM", "Basic realm=\"open, NTLM", "Nego2",
        "Kerberos",
        ",NTLM", "Basic realm=x NTLM",
    ])
    func `a challenge for a connection is found among others`(value: String) { #expect(isOffered(value)) }

    @Test(arguments: [
        "", "Basic realm=\"a\"", "Bearer error=\"invalid_token\"", "Basic realm=\"NTLM\"", "NTLMv2", "Negotiated", ",",
    ])
    func `other challenges leave the connection alone`(value: String) { #expect(!isOffered(value)) }

    @Test(arguments: [
        ("Authorization", true), ("AUTHORIZATION", true), ("Proxy-Authorization", true), ("X-Authorization", false),
    ])
    func `the fields for credentials are looked at`(name: String, expected: Bool) throws {
        var fields = HttpFields()
        let name = try #require(FieldName(name))
        #expect(!fields.authenticateConnection)
        try fields.append(name, "Basic x")
        #expect(!fields.authenticateConnection)
        try fields.append(name, "NTLM x")
        #expect(fields.authenticateConnection == expected)
        fields.remove(name)
        #expect(!fields.authenticateConnection)
    }

    @Test(arguments: [
        (401, "WWW-Authenticate", true), (407, "Proxy-Authenticate", true), (401, "Proxy-Authenticate", true),
        (407, "WWW-Authenticate", true),
        (200, "WWW-Authenticate", false), (403, "WWW-Authenticate", false), (401, "Authentication-Info", false),
    ])
    func `a response asks by its status and a challenge`(status: Int, name: String, expected: Bool) throws {
        var response = HttpResponse(try #require(HttpStatus(status)))
        let name = try #require(FieldName(name))
        try response.fields.append(name, "Basic realm=\"a\"")
        #expect(!response.asksToAuthenticateConnection)
        try response.fields.append(name, "Negotiate, NTLM")
        #expect(response.asksToAuthenticateConnection == expected)
    }
}
