import Capturing
import Synchronization
import Testing

@testable import HttpGateway
@testable import HttpWare

@Suite struct HarSourceTests {
    @Test func `a large entry goes to the loop in small pieces`() async throws {
        let text = String(repeating: "a", count: 3 << 20)
        let entry = """
            {"startedDateTime":"2026-01-01T00:00:00Z","time":1,"request":{"method":"GET","url":"http://a.test/","httpVersion":"HTTP/1.1","headers":[]},
            "response":{"status":200,"httpVersion":"HTTP/1.1","headers":[],"content":{"size":\(text.utf8.count),"mimeType":"text/plain","text":"\(text)"}}}
            """
        let archive = try HarReader(Array("{\"log\":{\"version\":\"1.2\",\"entries\":[\(entry),\(entry)]}}".utf8))
        var settings = CaptureSettings()
        settings.content = .mebibytes(4)
        let store = CaptureStore(settings)
        #expect(store.take(archive.exchanges).count == 2)
        let source = HarSource(store, nil, withSecrets: false)
        let loop = try EventLoop.start(name: "har")
        defer {
            loop.stop()
            loop.join()
        }
        let received = Mutex<[UInt8]>([])
        var isWhole = false
        while !isWhole {
            isWhole = await withCheckedContinuation { continuation in
                loop.execute {
                    let feed = ContentFeed(loop: loop)
                    feed.take = { piece in
                        guard case .bytes(let bytes) = piece else { return continuation.resume(returning: true) }
                        #expect(bytes.count <= HarSource.step)
                        received.withLock { $0 += bytes }
                        continuation.resume(returning: false)
                    }
                    source.next(feed)
                }
            }
        }
        let again = try HarReader(received.withLock { $0 })
        #expect(again.exchanges.map { $0.response?.content.kept.count } == [text.utf8.count, text.utf8.count])
    }
}
