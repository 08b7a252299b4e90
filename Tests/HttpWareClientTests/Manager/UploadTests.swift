import Foundation
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct UploadTests {
    private static func echo() throws -> LocalOrigin {
        try LocalOrigin { HttpResponse(.ok, content: $0.content) }
    }

    private static func file(_ bytes: [UInt8]) throws -> String {
        let path = FileManager.default.temporaryDirectory.appending(path: "upload-\(UUID()).bin").path
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }

    @Test func `a file is streamed from disk with its length`() async throws {
        let origin = try UploadTests.echo()
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let path = try UploadTests.file(bytes)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let manager = HttpManager(service: try .local(origin.port))
        let sent = Mutex<[TransferProgress]>([])
        let request = Request<RawContent>(.put, "/file", content: .file(try FileContent(path: path)))
        let response = try await manager.send(request) { step in sent.withLock { $0.append(step) } }
        #expect(response.bytes == bytes)
        #expect(origin.requests.first?.fields[.contentLength] == "1000000")
        let steps = sent.withLock { $0 }
        #expect(steps.contains(TransferProgress(direction: .sent, bytes: 1_000_000, total: 1_000_000)))
        #expect(steps.last?.direction == .received)
        #expect(steps.last?.fraction == 1)
    }

    @Test func `a form of fields and a file is streamed as one`() async throws {
        let origin = try UploadTests.echo()
        let path = try UploadTests.file(Array("inside".utf8))
        defer { try? FileManager.default.removeItem(atPath: path) }
        var form = Multipart()
        form.add("title", "At the lake")
        form.add("photo", try FileContent(path: path, contentType: "image/jpeg"), filename: "la\"ke\r\n.jpg")
        let manager = HttpManager(service: try .local(origin.port))
        let response = try await manager.send(Request<RawContent>(.post, "/photos", content: .multipart(form)))
        let line = "--\(form.boundary)\r\nContent-Disposition: form-data; name="
        #expect(
            response.text
                == line + "\"title\"\r\n\r\nAt the lake\r\n" + line
                + "\"photo\"; filename=\"la%22ke%0D%0A.jpg\"\r\nContent-Type: image/jpeg\r\n\r\ninside\r\n--\(form.boundary)--\r\n"
        )
        #expect(origin.requests.first?.fields[.contentType] == "multipart/form-data; boundary=\(form.boundary)")
        #expect(origin.requests.first?.fields[.contentLength] == "\(response.bytes.count)")
    }

    @Test func `pieces of a sequence go out as they come, chunked where the length is not known`() async throws {
        let origin = try UploadTests.echo()
        let manager = HttpManager(service: try .local(origin.port))
        let (pieces, input) = AsyncStream.makeStream(of: [UInt8].self)
        input.yield(Array("one ".utf8))
        input.yield([])
        input.yield(Array("two".utf8))
        input.finish()
        let response = try await manager.send(Request<RawContent>(.post, "/", content: .stream(pieces)))
        #expect(response.text == "one two")
        #expect(origin.requests.first?.fields.contains(.contentLength) == false)
    }

    @Test func `an origin server that takes nothing stops the source`() async throws {
        try await ScriptedOrigin.run([.expectHead(startingWith: "POST /"), .pause]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            let taken = Mutex(0)
            let pieces = AsyncStream<[UInt8]> {
                taken.withLock { $0 += 1 }
                return [UInt8](repeating: 0x78, count: 65536)
            }
            let task = Task { try await manager.send(Request<NoContent>(.post, "/", content: .stream(pieces))) }
            while origin.heads.isEmpty { await Task.yield() }
            var last = -1
            while last != taken.withLock({ $0 }) {
                last = taken.withLock { $0 }
                for _ in 0..<2000 { await Task.yield() }
            }
            #expect(last < 1024)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            origin.proceed()
        }
    }

    @Test(arguments: [3, 5])
    func `a source that brings another length than it said fails the request`(length: Int) async throws {
        let origin = try UploadTests.echo()
        let manager = HttpManager(service: try .local(origin.port))
        let pieces = AsyncStream<[UInt8]> { continuation in
            continuation.yield([1, 2])
            continuation.yield([3, 4])
            continuation.finish()
        }
        let error = await #expect(throws: HttpError.self) {
            try await manager.send(Request<NoContent>(.post, "/", content: .stream(pieces, length: length)))
        }
        #expect(error?.fault == .uploadFailed)
        #expect(origin.requests.isEmpty)
    }

    @Test func `a source that throws fails the request with its error`() async throws {
        let origin = try UploadTests.echo()
        let manager = HttpManager(service: try .local(origin.port))
        let pieces = AsyncThrowingStream<[UInt8], any Error> { continuation in
            continuation.yield([1, 2])
            continuation.finish(throwing: Broken())
        }
        let error = await #expect(throws: HttpError.self) {
            try await manager.send(Request<NoContent>(.post, "/", content: .stream(pieces)))
        }
        #expect(error?.underlying is Broken)
        #expect(error?.side == .client)
    }

    @Test func `a file that does not exist is refused before anything is sent`() {
        #expect(throws: FileFault.self) { try FileContent(path: "/nowhere/at/all") }
        #expect(throws: FileFault.self) { try FileContent(path: "/tmp") }
    }

    private struct Broken: Error {}
}
