import Foundation
import HttpWareClient
import HttpWareFoundation
import HttpWareTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct UrlMessagesTests {
    @Test func `a request goes to URLRequest and back`() throws {
        let request = try HttpRequest(
            .post, "https://example.com:8443/a%20b?c=d", fields: ["X-A": "1", "X-B": "2"], content: .text("hello"))
        let other = try #require(URLRequest(request))
        #expect(other.httpMethod == "POST" && other.url?.absoluteString == "https://example.com:8443/a%20b?c=d")
        #expect(other.value(forHTTPHeaderField: "x-a") == "1" && other.httpBody == Data("hello".utf8))
        let back = try HttpRequest(other)
        #expect(back.receivedTarget == "https://example.com:8443/a%20b?c=d")
        #expect(back.method == .post && back.fields["X-B"] == "2" && back.content.text == "hello")
    }

    @Test func `a message that is not sent is not converted`() throws {
        var request = URLRequest(url: try #require(URL(string: "https://example.com/a#part")))
        #expect(try HttpRequest(request).receivedTarget == "https://example.com/a")
        request.httpBodyStream = InputStream(data: Data([1]))
        #expect(throws: GatewayError.self) { try HttpRequest(request) }
        #expect(throws: (any Error).self) {
            try HttpRequest(URLRequest(url: try #require(URL(string: "ftp://example.com/a"))))
        }
        #expect(URLRequest(try HttpRequest(.get, "/relative")) == nil)
    }

    @Test func `a response goes to HTTPURLResponse and back`() throws {
        let url = try #require(URL(string: "https://example.com/"))
        let response = HttpResponse(.notFound, fields: ["ETag": "\"a\"", "Vary": "a", "vary": "b"])
        let other = try #require(HTTPURLResponse(response, url: url))
        #expect(other.statusCode == 404 && other.value(forHTTPHeaderField: "Vary") == "a, b")
        let back = try HttpResponse(other, content: Data("x".utf8))
        #expect(back.status == .notFound && back.fields["ETag"] == "\"a\"" && back.content.text == "x")
    }
}
