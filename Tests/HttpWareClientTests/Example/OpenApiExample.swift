import Foundation
import HTTPTypes
import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

// The adapter of the article OtherLibraries.md.

struct HttpWareTransport: ClientTransport {
    let manager: HttpManager

    func send(_ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String)
        async throws -> (HTTPResponse, HTTPBody?)
    {
        let message = try HttpRequest(request)
        var own = Request<RawContent>(message.method, RoutePath(encoded: message.upstreamTarget), name: operationID)
        for (name, value) in message.fields { own.headers.append(name, value) }
        if let body {
            var length: Int?
            if case .known(let count) = body.length { length = Int(count) }
            own.content = .stream(body.map { Array($0) }, length: length, contentType: nil)
        }
        let answer = try await manager.stream(own)
        guard let response = HTTPResponse(answer.response) else {
            throw GatewayError(.upstream, .responseMalformed, "a field name is not allowed in HTTPFields")
        }
        let pieces = answer.bytes.map { $0[...] }
        return (response, HTTPBody(pieces, length: .unknown, iterationBehavior: .single))
    }
}

@Suite struct OpenApiExample {
    private static func transport(_ origin: LocalOrigin) throws -> HttpWareTransport {
        var service = try ServiceDefinition.local(origin.port)
        service.success = StatusSet([100...599])
        return HttpWareTransport(manager: HttpManager(service: service))
    }

    private static func send(
        _ request: HTTPRequest, _ body: HTTPBody?, through transport: any ClientTransport
    ) async throws -> (HTTPResponse, HTTPBody?) {
        try await transport.send(
            request, body: body, baseURL: try #require(URL(string: "http://127.0.0.1")), operationID: "addPet")
    }

    @Test func `a request of a generated client goes with its fields and its body, and its response comes back`()
        async throws
    {
        let origin = try LocalOrigin { request in
            HttpResponse(.created, fields: ["X-Id": "7"], content: .text((request.content.text ?? "") + "!"))
        }
        let request = HTTPRequest(
            method: .post, scheme: nil, authority: nil, path: "/pets?kind=a%20b",
            headerFields: [.contentType: "text/plain", .accept: "text/plain"])
        let (response, body) = try await OpenApiExample.send(
            request, HTTPBody("Rex"), through: try OpenApiExample.transport(origin))
        #expect(response.status == .created)
        #expect(response.headerFields[try #require(HTTPField.Name("X-Id"))] == "7")
        #expect(try await body?.text() == "Rex!")
        let sent = try #require(origin.requests.first)
        #expect(sent.receivedTarget == "/pets?kind=a%20b" && sent.method == .post)
        #expect(sent.fields.values(of: .contentType) == ["text/plain"])
        #expect(sent.fields[.contentLength] == "3")
    }

    @Test func `a generated client judges the status itself`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.notFound) }
        let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/pets/1")
        let (response, body) = try await OpenApiExample.send(
            request, nil, through: try OpenApiExample.transport(origin))
        #expect(response.status == .notFound)
        #expect(try await body?.text() == "")
    }
}
