import Foundation
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct DownloadTests {
    struct GetFile: Route {
        var path: RoutePath { "/file" }
    }

    private static func place() -> String {
        FileManager.default.temporaryDirectory.appending(path: "download-\(UUID()).bin").path
    }

    private static func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    @Test func `a download goes to its place when it is whole, with progress`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .bytes(count: 300_000)) }
        let path = DownloadTests.place()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let steps = Mutex<[TransferProgress]>([])
        let file = try await HttpManager(service: try .local(origin.port)).download(GetFile(), to: path) { step in
            steps.withLock { $0.append(step) }
        }
        #expect(file.bytes == 300_000 && file.resumed == 0)
        #expect(try DownloadTests.text(path).utf8.count == 300_000)
        #expect(steps.withLock { $0.last } == TransferProgress(direction: .received, bytes: 300_000, total: 300_000))
        #expect(!FileManager.default.fileExists(atPath: path + ".part"))
        #expect(!FileManager.default.fileExists(atPath: path + ".part.validator"))
    }

    @Test func `RFC 9110 §13.1.5: a download that breaks off is taken up where it stopped`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /file", without: ["Range"]),
            .send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234"), .close, .accept,
            .expectHead(startingWith: "GET /file", lines: ["Range: bytes=5-", "If-Range: \"v1\""]),
            .send("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789"),
        ]) { origin in
            let path = DownloadTests.place()
            defer { try? FileManager.default.removeItem(atPath: path) }
            let file = try await HttpManager(service: try .local(origin.port)).download(GetFile(), to: path)
            #expect(file.bytes == 10 && file.resumed == 5)
            #expect(try DownloadTests.text(path) == "0123456789")
        }
    }

    @Test func `a file that changed meanwhile comes whole, and a later call takes a part up`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /file"),
            .send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234"), .close, .accept,
            .expectHead(startingWith: "GET /file", lines: ["Range: bytes=5-"]),
            .send("HTTP/1.1 200 OK\r\nETag: \"v2\"\r\nContent-Length: 3\r\n\r\nnew"),
        ]) { origin in
            let path = DownloadTests.place()
            defer { try? FileManager.default.removeItem(atPath: path) }
            let manager = HttpManager(service: try .local(origin.port))
            await #expect(throws: HttpError.self) { try await manager.download(GetFile(), to: path, attempts: 1) }
            #expect(!FileManager.default.fileExists(atPath: path))
            let file = try await manager.download(GetFile(), to: path, attempts: 1)
            #expect(file.resumed == 0)
            #expect(try DownloadTests.text(path) == "new")
        }
    }

    @Test(arguments: ["W/\"v1\"", nil])
    func `RFC 9110 §13.1.5: a weak validator takes nothing up`(tag: String?) async throws {
        let field = tag.map { "ETag: \($0)\r\n" } ?? ""
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /file"),
            .send("HTTP/1.1 200 OK\r\n\(field)Content-Length: 10\r\n\r\n01234"), .close, .accept,
            .expectHead(startingWith: "GET /file", without: ["Range", "If-Range"]),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"),
        ]) { origin in
            let path = DownloadTests.place()
            defer { try? FileManager.default.removeItem(atPath: path) }
            let file = try await HttpManager(service: try .local(origin.port)).download(GetFile(), to: path)
            #expect(file.resumed == 0)
            #expect(try DownloadTests.text(path) == "0123456789")
        }
    }

    @Test func `a part that is not a beginning of the server's content is thrown away`() async throws {
        let origin = try LocalOrigin { request in
            request.fields.contains(.range)
                ? HttpResponse(.rangeNotSatisfiable) : HttpResponse(.ok, content: .text("ok"))
        }
        let path = DownloadTests.place()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try "toolong".write(toFile: path + ".part", atomically: true, encoding: .utf8)
        let note = "\(origin.url)/file\n\"v1\"\n\n"
        try note.write(toFile: path + ".part.validator", atomically: true, encoding: .utf8)
        _ = try await HttpManager(service: try .local(origin.port)).download(GetFile(), to: path)
        #expect(try DownloadTests.text(path) == "ok")
        #expect(origin.requests.count == 2)
    }

    @Test func `another range than was asked for is refused`() async throws {
        let origin = try LocalOrigin { _ in
            HttpResponse(.partialContent, fields: ["Content-Range": "bytes 2-3/4"], content: .text("ab"))
        }
        let path = DownloadTests.place()
        let error = await #expect(throws: HttpError.self) {
            try await HttpManager(service: try .local(origin.port)).download(GetFile(), to: path)
        }
        #expect(error?.fault == .exchange(.responseMalformed))
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a part that states a length beyond all numbers begins the download again, without a trap`()
        async throws
    {
        let part = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-3/4\r\nContent-Length: \(Int.max)\r\n\r\n"
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /file", lines: ["Range: bytes=2-"]), .send(part + "cd"), .close, .accept,
            .expectHead(startingWith: "GET /file", without: ["Range"]),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nefgh"),
        ]) { origin in
            let path = DownloadTests.place()
            defer { try? FileManager.default.removeItem(atPath: path) }
            try "ab".write(toFile: path + ".part", atomically: true, encoding: .utf8)
            let note = "http://127.0.0.1:\(origin.port)/file\n\"v1\"\n4\n"
            try note.write(toFile: path + ".part.validator", atomically: true, encoding: .utf8)
            let manager = HttpManager(service: try .local(origin.port))
            #expect(try await manager.download(GetFile(), to: path, attempts: 1).bytes == 4)
            #expect(try DownloadTests.text(path) == "efgh")
        }
    }

    @Test func `a place that cannot be written is the client's fault`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text("ok")) }
        let error = await #expect(throws: HttpError.self) {
            try await HttpManager(service: try .local(origin.port)).download(GetFile(), to: "/nowhere/at/all")
        }
        #expect(error?.fault == .fileFailed)
        #expect(error?.side == .client)
    }
}
