import HttpWare
import Synchronization
import Testing

@testable import Capturing

@Suite struct CaptureNotesTests {
    private static let content = #"{"password":"hunter2","a":"b"}"#
    private static let shown = #"{"password":"…","a":"b"}"#

    private static func notes(_ id: Int = 1, _ settings: CaptureSettings = CaptureSettings()) throws -> CaptureNotes {
        let notes = CaptureNotes(
            started: WallTime(seconds: 1), method: "POST", version: "HTTP/1.1", listener: "web", peer: nil,
            CaptureRules(settings), in: []
        ) { $0 += "http://a.test/x?token=t0k".utf8 }
        notes.id = id
        notes.isOpen = false
        notes.status = 200
        var fields = HttpFields()
        try fields.append("Host", "a.test:80")
        try fields.append("Authorization", "Bearer abc")
        try fields.append("X-Odd", raw: [0xe9])
        notes.request.head = notes.note(fields)
        notes.sentHost = "a.test"
        notes.sentRequest.head = notes.note(fields, like: notes.request.head)
        var response = HttpFields()
        try response.append("Content-Type", "text/plain")
        try response.append("Set-Cookie", "a=b")
        notes.receivedResponse.head = notes.note(response)
        notes.response.head = notes.note(response, like: notes.receivedResponse.head)
        notes.response.content = ContentCopy(isLikeOther: true)
        Array(content.utf8).withUnsafeBytes { bytes in
            notes.receivedResponse.content.add(bytes, keeping: bytes.count)
            let isLike = notes.response.content.add(
                bytes, keeping: bytes.count, ifLike: notes.receivedResponse.content)
            #expect(isLike)
        }
        notes.finish()
        return notes
    }

    private static func text(_ message: CapturedMessage?) -> String {
        String(decoding: message?.content.kept ?? [], as: UTF8.self)
    }

    @Test func `values are masked when the capture is made, and known for a repetition`() throws {
        let capture = try Self.notes().capture()
        #expect(capture.url == "http://a.test/x?token=…")
        #expect(Array(capture.request.fields.map(\.value)) == ["a.test:80", "Bearer …", "é"])
        #expect(capture.sentRequest?.fields.map(\.value) == ["a.test", "Bearer …", "é"])
        #expect(capture.response?.values(of: "set-cookie") == ["…"])
        #expect(capture.response?.fields == capture.receivedResponse?.fields)
        #expect(Self.text(capture.response) == Self.shown && Self.text(capture.receivedResponse) == Self.shown)
        let restored = capture.restored.exchange
        #expect(restored.url.hasSuffix("token=t0k") && Self.text(restored.response) == Self.content)
        #expect(restored.request.values(of: "authorization") == ["Bearer abc"])
    }

    @Test func `a target that is not UTF-8 is shown percent-encoded, and its bytes are known for a repetition`() throws
    {
        let raw: [UInt8] = Array("http://a.test/l".utf8) + [0xe9]
        let notes = CaptureNotes(
            started: WallTime(seconds: 1), method: "GET", version: "HTTP/1.1", listener: "web", peer: nil,
            CaptureRules(CaptureSettings()), in: []
        ) { $0 += raw }
        notes.isOpen = false
        notes.finish()
        let capture = notes.capture()
        #expect(capture.url == "http://a.test/l%E9" && capture.secrets?.target == raw)
        #expect(try RequestRepetition(capture).target == raw)
        #expect(try Self.notes().capture().secrets?.target == nil)
    }

    @Test func `values that the gateway injected are not known afterwards`() throws {
        let notes = try Self.notes()
        notes.hasInjected = true
        let restored = notes.capture().restored.exchange
        #expect(Self.text(restored.response) == Self.shown && restored.response?.values(of: "set-cookie") == ["…"])
    }

    @Test func `a head that equals the one before takes no memory`() throws {
        let notes = try Self.notes()
        let before = notes.bytes.count
        var fields = HttpFields()
        try fields.append("Content-Type", "text/plain")
        try fields.append("Set-Cookie", "a=b")
        let same = notes.note(fields, like: notes.receivedResponse.head)
        #expect(notes.bytes.count == before && same.isSame(as: notes.receivedResponse.head))
        try fields.append("Via", "1.1 a")
        let other = notes.note(fields, like: notes.receivedResponse.head)
        #expect(notes.bytes.count > before && !other.isSame(as: notes.receivedResponse.head))
    }

    @Test func `a head with many lines, and one with a long line, are masked at once`() throws {
        var many = HttpFields()
        for number in 0..<300 { try many.append("X-Api-Key", "\(number)") }
        var long = HttpFields()
        try long.append("Authorization", "Basic " + String(repeating: "a", count: 70_000))
        for fields in [many, long] {
            let notes = try Self.notes()
            notes.request.head = notes.note(fields)
            let capture = notes.capture()
            #expect(capture.request.fields.count == fields.count)
            #expect(capture.request.fields.allSatisfy { $0.value.hasSuffix("…") })
            #expect(
                capture.restored.exchange.request.fields.last?.value
                    == fields.rawLines.last.map {
                        String(decoding: $0.value, as: UTF8.self)
                    })
        }
    }

    @Test func `a row has no content, and the facts of the capture`() throws {
        let notes = try Self.notes()
        let (row, capture) = (notes.row(), notes.capture())
        #expect(Self.text(row.response) == "" && row.response?.content.size == capture.response?.content.size)
        #expect(row.url == capture.url && row.status == 200 && row.contentSize == capture.contentSize)
        #expect(row.response?.fields == capture.response?.fields)
    }

    // MARK: In the store

    /// Keeps what it gets.
    private final class Archive: CaptureArchive {
        let taken = Mutex<[CapturedExchange]>([])
        var lastId: Int { 0 }
        func put(_ capture: KeptCapture) { taken.withLock { $0.append(capture.exchange) } }
        func find(_ id: Int) -> CapturedExchange? { nil }
        func list(
            before id: Int, limit: Int, filter: CaptureFilter?, until deadline: ContinuousClock.Instant?,
            except: (Int) -> Bool
        ) -> CapturePage { CapturePage([], next: nil) }
        func ids(before id: Int, filter: CaptureFilter?) -> [Int] { [] }
        func mark(_ id: Int, pinned: Bool?, comment: String?) -> Bool { false }
        func clear(filter: CaptureFilter?) -> [Int] { [] }
        func close() {}
    }

    @Test func `an archive and every reader get the capture masked`() throws {
        let archive = Archive()
        let store = CaptureStore(CaptureSettings(), archive: archive)
        store.put(KeptCapture(try Self.notes()))
        let filter = try CaptureFilter("~bs hunter2")
        let found = [archive.taken.withLock { $0[0] }, try #require(store.find(1))]
        for capture in found + store.list(limit: 9, filter: try CaptureFilter("~bs password")).captures {
            #expect(Self.text(capture.response) == Self.shown && !capture.url.contains("t0k"))
        }
        #expect(store.list(limit: 9, filter: filter).captures.isEmpty && store.ids(filter: nil) == [1])
    }

    @Test func `a pin that was set while the exchange ran stays`() throws {
        let store = CaptureStore(CaptureSettings())
        let notes = try Self.notes()
        notes.isOpen = true
        store.put(notes.capture())
        #expect(store.pin(1, true) && store.comment(1, "look"))
        notes.isOpen = false
        store.put(KeptCapture(notes))
        let capture = try #require(store.find(1))
        #expect(capture.isPinned && capture.comment == "look" && !capture.isOpen)
        #expect(store.pin(1, false) && store.find(1)?.isPinned == false)
        #expect(store.clear() == 1)
    }

    @Test func `memory is counted again when captures are made, and stays within its bound`() throws {
        var settings = CaptureSettings()
        settings.memory = .bytes(64 << 10)
        let store = CaptureStore(settings)
        for id in 1...100 { store.put(KeptCapture(try Self.notes(id, settings))) }
        #expect(store.bytes <= 64 << 10 && store.count > 5)
        let before = store.count
        #expect(store.list(limit: 1000, filter: nil).captures.count == before)
        _ = store.list(limit: 1000, filter: try CaptureFilter("~bs nothing"))
        #expect(store.bytes <= 64 << 10 && store.count > before / 2)
        let kept = store.list(limit: 1000, filter: try CaptureFilter("~bs password")).captures
        #expect(store.bytes == kept.reduce(0) { $0 + $1.memory })
    }
}
