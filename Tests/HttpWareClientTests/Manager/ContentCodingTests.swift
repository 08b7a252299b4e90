import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare
@testable import HttpWareClient

@Suite struct ContentCodingTests {
    private static let text = #"{"id":1,"title":"\#(String(repeating: "abc", count: 2000))","isDone":false}"#

    private static func coded(_ text: [UInt8], _ coding: ContentCoding) throws -> [UInt8] {
        let encoder = try #require(coding.makeEncoder(level: 6))
        var output: [UInt8] = []
        try text.withUnsafeBytes { try encoder.encode($0, .finish, into: &output) }
        return output
    }

    private static func response(_ bytes: [UInt8], _ coding: String) throws -> HttpResponse {
        var response = HttpResponse(.ok, fields: ["Content-Type": "application/json"], content: .bytes(bytes))
        try response.fields.set(.contentEncoding, to: coding)
        return response
    }

    private final class Reader: Postware {
        let seen = Mutex<String?>(nil)
        var contentNeed: ContentNeed { .whole(upTo: 1 << 20) }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
            seen.withLock { [text = response.content.text] in $0 = text }
            return .pass
        }
    }

    @Test(arguments: [ContentCoding.gzip, .br, .zstd])
    func `compressed responses are asked for and decoded`(coding: ContentCoding) async throws {
        let bytes = try ContentCodingTests.coded(Array(ContentCodingTests.text.utf8), coding)
        let origin = try LocalOrigin { _ in try ContentCodingTests.response(bytes, coding.rawValue) }
        let reader = Reader()
        for postwares in [[], [reader]] {
            let manager = HttpManager(service: try .local(origin.port), postwares: postwares)
            let response = try await manager.response(of: GetTodo(id: 1))
            #expect(response.model.title.utf8.count == 6000)
            #expect(!response.fields.contains(.contentEncoding))
            var streamed: [UInt8] = []
            for try await piece in try await manager.stream(GetTodo(id: 1)).bytes { streamed += piece }
            #expect(streamed == Array(ContentCodingTests.text.utf8))
        }
        // Wares see it decoded, too.
        #expect(reader.seen.withLock { $0 } == ContentCodingTests.text)
        #expect(origin.requests.first?.fields[.acceptEncoding] == "gzip, br, zstd")
        #expect(origin.requests.first?.fields[.userAgent]?.hasPrefix("httpware/") == true)
    }

    @Test func `an error's content is decoded, and stored responses are`() async throws {
        let problem = try ContentCodingTests.coded(Array(#"{"id":4,"title":"no","isDone":true}"#.utf8), .gzip)
        let bytes = try ContentCodingTests.coded(Array(ContentCodingTests.text.utf8), .gzip)
        let origin = try LocalOrigin { request in
            var response = try ContentCodingTests.response(request.path == "/todos/1" ? bytes : problem, "gzip")
            if request.path != "/todos/1" { response.status = .conflict }
            try response.fields.set(.cacheControl, to: "max-age=100")
            try response.fields.set("Vary" as FieldName, to: "Accept-Encoding")
            return response
        }
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [HttpCache(store: .memory(), mode: .private)])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 4)) })
        #expect(try error.model(Todo.self).title == "no")
        let first = try await manager.response(of: GetTodo(id: 1))
        let second = try await manager.response(of: GetTodo(id: 1))
        #expect(first.model == second.model && second.responder == .cache)
        #expect(origin.requests.count == 2)
    }

    @Test func `a request that names its own codings gets its response as it comes`() async throws {
        let bytes = try ContentCodingTests.coded([1, 2, 3], .gzip)
        let origin = try LocalOrigin { _ in try ContentCodingTests.response(bytes, "gzip") }
        let manager = HttpManager(service: try .local(origin.port))
        let own = Request<RawContent>(.get, "/raw", headers: ["Accept-Encoding": "gzip"])
        let response = try await manager.response(of: own)
        #expect(response.model.bytes == bytes && response.fields[.contentEncoding] == "gzip")
        var service = try ServiceDefinition.local(origin.port)
        service.decodesContent = false
        service.headers = ["User-Agent": "todo/1.0"]
        let plain = try await HttpManager(service: service).response(of: Request<RawContent>(.get, "/raw"))
        #expect(plain.model.bytes == bytes)
        #expect(origin.requests.last?.fields.contains(.acceptEncoding) == false)
        #expect(origin.requests.last?.fields[.userAgent] == "todo/1.0")
    }

    @Test(arguments: ["gzip", "br", "zstd"])
    func `content that is damaged, or not whole, is an error of the server`(coding: String) async throws {
        let bytes = try ContentCodingTests.coded(
            Array(ContentCodingTests.text.utf8), try #require(ContentCoding(rawValue: coding)))
        for sent in [Array(bytes.dropLast(3)), Array(repeating: 0x41, count: 100)] {
            let origin = try LocalOrigin { _ in try ContentCodingTests.response(sent, coding) }
            let manager = HttpManager(service: try .local(origin.port))
            let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) })
            #expect(error.side == .upstream && error.fault == .exchange(.responseMalformed))
        }
    }

    @Test func `a small response that grows beyond the limit fails`() async throws {
        let bomb = try ContentCodingTests.coded(Array(repeating: 0, count: 8 << 20), .br)
        #expect(bomb.count < 1000)
        let origin = try LocalOrigin { _ in try ContentCodingTests.response(bomb, "br") }
        var service = try ServiceDefinition.local(origin.port)
        service.responseLimit = .mebibytes(1)
        let manager = HttpManager(service: service)
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) })
        #expect(error.fault == .exchange(.responseContentTooLarge))
    }

    @Test(arguments: ["gzip", "br", "zstd"])
    func `content is decoded in steps, at the pace of its reader`(coding: String) throws {
        let count = 4 << 20
        let bomb = try ContentCodingTests.coded(
            Array(repeating: 0, count: count), try #require(ContentCoding(rawValue: coding)))
        let filter = DecodingFilter(try #require(ContentDecoder([coding], growth: .unlimited)))
        var total = 0
        var steps = 0
        func step(_ body: (inout [UInt8]) throws -> Void) rethrows {
            var output: [UInt8] = []
            try body(&output)
            #expect(output.count <= 64 << 10)
            total += output.count
            steps += 1
        }
        try bomb.withUnsafeBytes { bytes in try step { try filter.filter(bytes, into: &$0) } }
        while filter.isPending { try step { try filter.more(into: &$0) } }
        try step { try filter.finish(into: &$0) }
        #expect(total == count && steps >= count / (64 << 10))
    }

    @Test(arguments: ["gzip", "br", "zstd"])
    func `a stream of few bytes that decode to many arrives whole`(coding: String) async throws {
        let count = 20 << 20
        let bomb = try ContentCodingTests.coded(
            Array(repeating: 0, count: count), try #require(ContentCoding(rawValue: coding)))
        let origin = try LocalOrigin { _ in try ContentCodingTests.response(bomb, coding) }
        let manager = HttpManager(service: try .local(origin.port))
        var received = 0
        for try await piece in try await manager.stream(GetTodo(id: 1)).bytes { received += piece.count }
        #expect(received == count)
    }

    @Test func `a whole response has a limit in decoded bytes, with wares and without`() async throws {
        let bomb = try ContentCodingTests.coded(Array(repeating: 0, count: 60 << 20), .gzip)
        let origin = try LocalOrigin { _ in try ContentCodingTests.response(bomb, "gzip") }
        var service = try ServiceDefinition.local(origin.port)
        service.responseLimit = .mebibytes(1)
        for postwares in [[], [Reader()]] {
            let manager = HttpManager(service: service, postwares: postwares)
            let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) })
            #expect(error.fault == .exchange(.responseContentTooLarge))
        }
    }

    @Test func `a download is kept as the server has it`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text("whole")) }
        let folder = TemporaryFolder()
        try await HttpManager(service: try .local(origin.port)).download(GetTodo(id: 1), to: folder.path + "/a")
        #expect(origin.requests.first?.fields[.acceptEncoding] == "identity")
    }
}
