import HttpWare
import HttpWareTesting
import Testing

@testable import Credentials

@Suite struct TokenRequestTests {
    private func definition(_ grant: CredentialDefinition.Grant) -> CredentialDefinition {
        var definition = CredentialDefinition(name: "a", grant: grant)
        definition.clientId = "client:1"
        definition.clientSecret = Secret("päss wörd&=")
        definition.scopes = ["read", "write"]
        return definition
    }

    @Test func `client authentication basic encodes as a form first, RFC 6749 §2.3.1`() throws {
        let request = try TokenRequest.make(
            definition(.clientCredentials), to: "https://a.example/token", refreshToken: nil)
        // client%3A1:p%C3%A4ss%20w%C3%B6rd%26%3D
        #expect(
            request.fields[.authorization] == "Basic Y2xpZW50JTNBMTpwJUMzJUE0c3MlMjB3JUMzJUI2cmQlMjYlM0Q=")
        #expect(request.content.text == "grant_type=client_credentials&scope=read%20write")
        #expect(request.fields[.contentType] == "application/x-www-form-urlencoded")
        #expect(request.fields[.accept] == "application/json")
    }

    @Test func `client authentication post stands in the content`() throws {
        var definition = definition(.refreshToken)
        definition.auth = .post
        definition.scopes = []
        let request = try TokenRequest.make(
            definition, to: "https://a.example/token", refreshToken: Secret("r+1"))
        #expect(
            request.content.text
                == "grant_type=refresh_token&refresh_token=r%2B1&client_id=client%3A1&client_secret=p%C3%A4ss%20w%C3%B6rd%26%3D"
        )
        #expect(request.fields[.authorization] == nil)
    }

    @Test func `a public client shows its name alone, RFC 6749 §6`() throws {
        var definition = definition(.refreshToken)
        definition.clientSecret = nil
        let request = try TokenRequest.make(definition, to: "https://a.example/token", refreshToken: Secret("r"))
        #expect(request.content.text?.hasSuffix("&client_id=client%3A1") == true)
    }

    @Test func `metadata is looked for as OpenID Connect and RFC 8414 §3.1 have it`() {
        #expect(
            TokenEndpoint.metadataPlaces(of: "https://a.example/tenant/") == [
                "https://a.example/tenant/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server/tenant",
            ])
        #expect(
            TokenEndpoint.metadataPlaces(of: "https://a.example").last
                == "https://a.example/.well-known/oauth-authorization-server")
    }

    @Test(arguments: [
        (#"{"issuer":"https://a.example","token_endpoint":"https://a.example/t"}"#, true),
        (#"{"issuer":"https://b.example","token_endpoint":"https://a.example/t"}"#, false),
        (#"{"issuer":"https://a.example/","token_endpoint":"https://a.example/t"}"#, false),
        (#"{"issuer":"https://a.example","token_endpoint":"http://a.example/t"}"#, false),
        (#"{"issuer":"https://a.example","token_endpoint":"/t"}"#, false),
        (#"{"issuer":"https://a.example"}"#, false), ("", false),
    ])
    func `the issuer in the metadata must be the one that was asked, RFC 8414 §3.3`(json: String, isGood: Bool) throws {
        var response = HttpResponse(.ok, content: .text(json))
        try response.fields.set(.contentType, to: "application/json")
        let issuer = try #require(EndpointUrl("https://a.example"))
        let url = try? TokenEndpoint.tokenUrl(in: response, of: issuer)
        #expect((url == "https://a.example/t") == isGood)
    }
}
