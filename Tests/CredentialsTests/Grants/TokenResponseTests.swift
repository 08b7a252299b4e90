import HttpWare
import Testing

@testable import Credentials

@Suite struct TokenResponseTests {
    private func read(_ json: String, status: HttpStatus = .ok, type: String? = "application/json") throws
        -> TokenResponse
    {
        var response = HttpResponse(status, content: .text(json))
        if let type { try response.fields.set(.contentType, to: type) }
        return try TokenResponse(response)
    }

    private func failure(_ json: String, status: HttpStatus = .ok, type: String? = "application/json")
        -> CredentialFailure?
    {
        do {
            _ = try read(json, status: status, type: type)
            return nil
        } catch {
            return error as? CredentialFailure
        }
    }

    @Test func `a response of RFC 6749 §5.1 is read`() throws {
        let read = try read(
            #"{"access_token":"a.b","token_type":"bearer","expires_in":3600,"refresh_token":"r","scope":"x","extra":{"a":[1]}}"#
        )
        #expect(read.accessToken == Secret("a.b"))
        #expect(read.refreshToken == Secret("r"))
        #expect(read.lifetime == 3600)
    }

    @Test(arguments: [("3600", 3600), ("\"3600\"", 3600), ("1.9", 1), ("1e3", 1000), ("1e15", 316_224_000)])
    func `expires_in may be a number or digits, and is bounded`(text: String, seconds: Int64) throws {
        #expect(try read(#"{"access_token":"t","expires_in":\#(text)}"#).lifetime == seconds)
    }

    @Test(arguments: [
        "-1", "0", "0.5", "\"-1\"", "\"1.5\"", "\"\"", "\"abc\"", "1e400", "true", "[]", "\"99999999999999\"",
    ])
    func `another expires_in is refused`(text: String) {
        #expect(failure(#"{"access_token":"t","expires_in":\#(text)}"#)?.kind == .failed)
    }

    @Test(arguments: [
        #""a\u0000b""#, #""a\r\nX: y""#, #""a b""#, #""\u00e9""#, #""""#, "null", "1", #"["t"]"#, #""a\u007f""#,
    ])
    func `a token that could not be sent is refused`(text: String) {
        #expect(failure(#"{"access_token":\#(text)}"#)?.kind == .failed)
        guard text != "null" else { return }
        #expect(failure(#"{"access_token":"t","refresh_token":\#(text)}"#)?.kind == .failed)
    }

    @Test func `a token of 1 MB is refused, and not shown`() {
        let token = String(repeating: "s", count: 1 << 20)
        let failure = failure(#"{"access_token":"\#(token)"}"#)
        #expect(failure?.kind == .failed)
        #expect(failure?.reason.contains("sss") == false)
    }

    @Test(arguments: [
        "{", "", "{\"access_token\":\"t\"", "[]", "null", "\u{feff}{}", "{\"access_token\":\"t\"}x",
        #"{"access_token":"t","access_token":"u"}"#, #"{"access_token":"t","error":1}"#,
    ])
    func `a response that is not the JSON asked for is refused`(text: String) {
        #expect(failure(text)?.kind == .failed)
    }

    @Test(arguments: ["text/html", "text/plain", "application/x-www-form-urlencoded", "applicationjson", nil])
    func `another content type is refused`(type: String?) {
        #expect(failure(#"{"access_token":"t"}"#, type: type)?.kind == .failed)
    }

    @Test(arguments: ["application/json; charset=UTF-8", "Application/JSON", "application/problem+json"])
    func `JSON is JSON`(type: String) throws {
        #expect(try read(#"{"access_token":"t"}"#, type: type).accessToken == Secret("t"))
    }

    @Test func `a token of a type that is not understood is not used, RFC 6749 §7.1`() {
        #expect(failure(#"{"access_token":"t","token_type":"mac"}"#)?.kind == .failed)
    }

    @Test(arguments: [
        (400, #"{"error":"invalid_grant"}"#, CredentialFailure.Kind.refused),
        (401, #"{"error":"invalid_client"}"#, .refused), (400, "nonsense", .refused), (503, "", .failed),
        (429, "", .failed), (302, "", .failed), (400, #"{"error":"temporarily_unavailable"}"#, .failed),
        (200, #"{"error":"invalid_grant","access_token":"t"}"#, .refused),
    ])
    func `each error code of a refusal has its meaning`(status: Int, json: String, kind: CredentialFailure.Kind) throws
    {
        let found = failure(json, status: try #require(HttpStatus(status)))
        #expect(found?.kind == kind)
        #expect(found?.isInvalidGrant == json.contains("invalid_grant"))
    }

    @Test func `an error code that is not known is not shown`() {
        #expect(failure(#"{"error":"s3cret"}"#, status: .badRequest)?.reason.contains("s3cret") == false)
    }

    @Test func `exp of a JWT is read, and only that`() {
        // {"alg":"none"}.{"exp":1800000000}
        #expect(
            JwtExpiry.read(Secret("eyJhbGciOiJub25lIn0.eyJleHAiOjE4MDAwMDAwMDB9.")) == WallTime(seconds: 1_800_000_000))
        for text in ["opaque", "a.b", "a.b.c", "..", "a.eyJleHAiOi0xfQ.c", "a.e30.c"] {
            #expect(JwtExpiry.read(Secret(text)) == nil)
        }
    }
}
