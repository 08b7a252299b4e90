import Capturing
import Foundation
import HttpWare
import HttpWareTesting
import Testing

@testable import DiskCapturing

@Suite final class CaptureFolderTests {
    private let path = NSTemporaryDirectory() + "httpware-captures-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private func folder(_ size: ByteCount = .mebibytes(16)) -> CaptureFolder {
        CaptureFolder(CaptureDisk(path: FilePath(path), maxSize: size))
    }

    static func capture(_ id: Int, _ size: Int = 100) -> CapturedExchange {
        var request = CapturedMessage(fields: [.init("Content-Type", "application/json"), .init("X-Id", "field-\(id)")])
        request.content.kept = Array("content \(id) ".utf8) + [UInt8](repeating: 0x61, count: size)
        request.content.size = request.content.kept.count
        var capture = CapturedExchange(
            id: id, started: WallTime(seconds: 1_800_000_000, nanoseconds: Int32(id % 1000)),
            method: id % 2 == 0 ? "GET" : "POST",
            url: "http://host-\(id % 10).test/path/\(id)", version: "HTTP/2", listener: "web", request: request)
        capture.isOpen = false
        capture.status = 200 + id % 3
        capture.route = "users"
        capture.service = "a-service-with-a-long-name"
        capture.duration = Int64(id) * 1000
        capture.sentRequest = request
        var response = CapturedMessage(fields: [.init("Set-Cookie", "a"), .init("Set-Cookie", "b")])
        response.trailers = [.init("Grpc-Status", "0")]
        response.content.size = 5000
        response.content.sha256 = "ab"
        response.content.dropped = 7
        capture.response = response
        capture.messages = [
            CapturedPiece(.send, .webSocket(opcode: 1), time: WallTime(seconds: 1), data: [1, 2], size: 3),
            CapturedPiece(.receive, .event(type: "a", id: nil), time: WallTime(seconds: -1), data: [], size: 0),
            CapturedPiece(.receive, .grpc, time: WallTime(seconds: 1), data: [0], size: 1),
        ]
        let certificate = TlsFacts.Certificate(
            subject: "CN=host", issuer: "CN=ca", names: ["DNS:host"], moreNames: 2, notBefore: WallTime(seconds: 1),
            notAfter: WallTime(seconds: 2), sha256: "00ff")
        capture.tls.server = TlsFacts(
            version: "TLSv1.3", cipher: "TLS_AES_128_GCM_SHA256", group: id % 3 == 0 ? nil : "x25519", alpn: "h2",
            name: nil, isResumed: id % 2 == 0,
            certificate: certificate, clientCertificate: nil)
        capture.operations = ["One", "Two"]
        capture.timings = CapturedTimings()
        capture.replayOf = id > 5 ? id - 1 : nil
        capture.rules = [1, 2]
        capture.summary = ReportSummary(
            responder: "upstream", cache: "miss", isReplayed: false, end: "completed",
            wares: [.init(ware: "mock", decision: "passed")])
        return capture
    }

    private func ids(_ folder: CaptureFolder, _ filter: String? = nil, before: Int = .max, limit: Int = 1000) throws
        -> [Int]
    {
        folder.list(before: before, limit: limit, filter: try filter.map { try CaptureFilter($0) }, until: nil) { _ in
            false
        }
        .captures.map(\.id)
    }

    /// The bytes of all files.
    private var size: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: path))?.reduce(0) { sum, name in
            sum + ((try? FileManager.default.attributesOfItem(atPath: path + "/" + name)[.size] as? Int) ?? 0)
        } ?? 0
    }

    @Test func `a folder that another process writes to is read, and taken over when it is free`() async throws {
        let former = folder()
        for id in 1...10 { former.put(CaptureFolderTests.capture(id)) }
        former.flush()
        let folder = folder()
        let base = folder.lastId
        #expect(base == 1_000_010)
        #expect(try ids(folder) == (1...10).reversed())
        folder.put(CaptureFolderTests.capture(base + 1))
        // Nothing of the other process is changed.
        #expect(!folder.mark(3, pinned: true, comment: nil) && folder.clear(filter: nil).isEmpty)
        former.put(CaptureFolderTests.capture(11))
        former.flush()
        #expect(former.find(11) != nil && folder.find(base + 1) == nil)
        former.close()
        try await eventually { folder.find(base + 1) != nil }
        #expect(try ids(folder) == [base + 1] + (1...11).reversed())
        #expect(folder.dropped == 0 && folder.mark(3, pinned: true, comment: nil))
        folder.put(CaptureFolderTests.capture(base + 2))
        folder.close()
        #expect(try ids(self.folder()).first == base + 2)
    }

    @Test func `captures that wait for a folder are written if it is free in the end`() throws {
        let former = folder()
        let folder = folder()
        folder.put(CaptureFolderTests.capture(folder.lastId + 1))
        former.close()
        folder.close()
        #expect(try ids(self.folder()).count == 1)
    }

    @Test func `captures are there whole after a restart, and ids go on`() throws {
        var first: CaptureFolder? = folder()
        for id in 1...300 { first?.put(CaptureFolderTests.capture(id)) }
        first?.close()
        first = nil
        let second = folder()
        #expect(second.lastId == 300)
        #expect(try ids(second) == (1...300).reversed())
        let (found, expected) = (try #require(second.find(17)), CaptureFolderTests.capture(17))
        #expect(found.url == expected.url && found.started == expected.started && found.status == expected.status)
        #expect(found.request == expected.request && found.sentRequest == expected.sentRequest)
        #expect(found.response == expected.response && found.receivedResponse == nil)
        #expect(found.messages == expected.messages && found.operations == expected.operations)
        #expect(found.timings == expected.timings && found.replayOf == 16 && found.rules == [1, 2])
        #expect(
            found.tls == expected.tls && found.tls.client == nil && found.tls.server?.certificate?.names == ["DNS:host"]
        )
        #expect(found.summary == expected.summary && found.duration == 17_000 && !found.isOpen)
        #expect(second.find(301) == nil)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            let mode = try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(name)")
        }
    }

    @Test func `the files stay within their bound at each moment, and the oldest captures go`() throws {
        let folder = folder(.mebibytes(1))
        for id in 1...3000 {
            folder.put(CaptureFolderTests.capture(id, 1000))
            if id % 50 == 0 {
                folder.flush()
                #expect(size <= 1 << 20)
            }
        }
        folder.flush()
        let kept = try ids(folder)
        #expect(kept.first == 3000 && kept.count > 300 && kept.count < 1000)
        #expect(kept == Array((3000 - kept.count + 1)...3000).reversed())
        #expect(folder.find(1) == nil && folder.find(2999) != nil)
    }

    @Test func `pinned captures and comments stay within the bound and after a restart`() throws {
        var first: CaptureFolder? = folder(.mebibytes(1))
        for id in 1...10 { first?.put(CaptureFolderTests.capture(id, 1000)) }
        #expect(first?.mark(3, pinned: true, comment: "look") == true)
        #expect(first?.mark(4, pinned: nil, comment: "only a comment") == true)
        #expect(first?.mark(999, pinned: true, comment: nil) == false)
        for id in 11...2000 {
            first?.put(CaptureFolderTests.capture(id, 1000))
            if id % 100 == 0 { first?.flush() }
        }
        first?.close()
        first = nil
        #expect(size <= 1 << 20)
        let second = folder(.mebibytes(1))
        #expect(try ids(second, "~marked") == [3])
        #expect(try ids(second, "~comment look") == [3])
        #expect(second.find(3)?.comment == "look" && second.find(3)?.isPinned == true)
        #expect(second.find(4) == nil)
        #expect(second.mark(3, pinned: false, comment: nil))
        for id in 2001...4000 {
            second.put(CaptureFolderTests.capture(id, 1000))
            if id % 100 == 0 { second.flush() }
        }
        second.flush()
        #expect(second.find(3) == nil)
    }

    @Test func `if all is pinned, new captures are not written, and the bound holds`() throws {
        let folder = folder(.mebibytes(1))
        for id in 1...1500 {
            folder.put(CaptureFolderTests.capture(id, 1000))
            _ = folder.mark(id, pinned: true, comment: nil)
        }
        #expect(size <= 1 << 20)
        #expect(folder.dropped > 100)
        #expect(folder.find(1) != nil && folder.find(1500) == nil)
    }

    @Test func `lists come in pages of falling numbers, however captures ended`() throws {
        let folder = folder(.mebibytes(1))
        for id in (1...400).shuffled() { folder.put(CaptureFolderTests.capture(id, 200)) }
        folder.flush()
        var all: [Int] = []
        var before = Int.max
        while true {
            let page = folder.list(before: before, limit: 37, filter: nil, until: nil) { $0 == 100 }
            all += page.captures.map(\.id)
            guard let next = page.next else { break }
            before = next
        }
        #expect(all == (1...400).reversed().filter { $0 != 100 })
        #expect(folder.ids(before: 101, filter: nil).sorted() == Array(1...100))
    }

    /// All pages of a search that has no time: each goes on by as little as it may.
    private static func searched(_ store: CaptureStore, _ filter: String) throws -> [[Int]] {
        let filter = try CaptureFilter(filter)
        var pages: [[Int]] = []
        var before = Int.max
        while pages.count < 10_000 {
            let page = store.list(before: before, limit: 10, filter: filter, until: .now - .seconds(1))
            pages.append(page.captures.map(\.id))
            guard let next = page.next else { return pages }
            try #require(next < before)
            #expect(page.captures.allSatisfy { $0.id >= next })
            before = next
        }
        return pages
    }

    @Test(arguments: ["~bq 'content 7. '", "~u path", "~u nothing", "~m post", "~id 5 | ~id 399"])
    func `a search that is out of time goes on where it ended`(filter: String) throws {
        let folder = folder(.mebibytes(1))
        // Some end long after others that began later, so that the numbers of segments overlap.
        let order = (1...400).filter { $0 % 7 != 0 } + (1...400).filter { $0 % 7 == 0 }
        for id in order { folder.put(CaptureFolderTests.capture(id, 800)) }
        folder.flush()
        let store = CaptureStore(CaptureSettings(), archive: folder)
        let pages = try CaptureFolderTests.searched(store, filter)
        #expect(pages.flatMap(\.self) == store.ids(filter: try CaptureFilter(filter)))
        #expect(pages.count > 2)
    }

    @Test(arguments: [
        ("~m post", 50), ("~d host-3", 10), ("~c 200", 33), ("~hq field-77", 1), ("~bq 'content 77 '", 1),
        ("~t json", 100),
        ("~did miss", 100), ("~ware mock & ~u /77$", 1), ("~replay", 95), ("~gql two", 100), ("~size >1MiB", 0),
        ("! ~hs cookie", 0), ("~hs 'set-cookie: b'", 100), ("~id 5 | ~id 6", 2),
    ])
    func `filters find the same as in memory`(text: String, count: Int) throws {
        let folder = folder()
        for id in 1...100 { folder.put(CaptureFolderTests.capture(id)) }
        folder.flush()
        #expect(try ids(folder, text).count == count)
        let filter = try CaptureFilter(text)
        #expect(try ids(folder, text) == (1...100).reversed().filter { filter.matches(CaptureFolderTests.capture($0)) })
    }

    /// Filters that the first facts decide, that a row decides, that its record decides, and that need the whole of it.
    private static let terms = [
        "~u /7$", "~m post", "~c 200", "~dur >50ms", "~size >1KiB", "~t json", "~tq json", "~ts css", "~q", "~s", "~e",
        "~a", "~src :17$", "~src 10.0.0.", "~dst backend", "~route user", "~service long", "~gql two", "~replayq",
        "~replays", "~replay", "~did miss", "~did mock:passed", "~did passed", "~did 'held a while'", "~did mocked",
        "~ware mock", "~ws", "~grpc", "~hq field-1", "~hq ^x-id:", "~hs 'cookie: b'", "~h grpc-status", "~h X-ID",
        "~bq 'content 7'", "~bs zipped", "~b ^zipped$", "~b 'word [0-9]'", "~bq word", "~bs word", "~marked",
        "~comment look", "~meta users", "~id 5",
    ]

    /// Captures that differ in all that filters ask for.
    private static func varied(_ id: Int) throws -> CapturedExchange {
        var capture = capture(id, 2000)
        capture.duration = Int64(id) * 1_000_000
        capture.client = id % 3 == 0 ? nil : "10.0.0.\(id % 5):\(id)"
        capture.server = id % 4 == 0 ? "backend:80" : nil
        capture.fault = id % 11 == 0 ? "connectionRefused" : nil
        capture.kind = CapturedExchange.Kind.allCases[id % 4]
        capture.messages = [
            CapturedPiece(
                id % 2 == 0 ? .send : .receive, .webSocket(opcode: 1), time: WallTime(seconds: 1),
                data: Array("word \(id % 10)".utf8), size: 6),
            CapturedPiece(.receive, .event(type: "a", id: "1"), time: WallTime(seconds: 1), data: [0x77], size: 1),
        ]
        if id % 7 == 0 {
            capture.response = nil
            capture.receivedResponse = nil
            if id % 2 == 0 { capture.status = nil }
        } else if id % 5 == 0 {
            capture.response?.fields = [.init("CONTENT-Encoding", "deflate"), .init("Content-Type", "text/css")]
            // A stored block of "zipped". RFC 1951 §3.2.4, RFC 1950.
            capture.response?.content.kept =
                [0x78, 0x01, 0x01, 6, 0, 0xf9, 0xff] + Array("zipped".utf8) + [0x09, 0x2d, 0x02, 0x8d]
            capture.response?.content.isDecoded = id % 2 == 0
            capture.receivedResponse = capture.response
        }
        if id % 6 == 0 {
            capture.summary = ReportSummary(
                responder: "mock", cache: nil, isReplayed: true, end: "cutOff",
                wares: [
                    .init(ware: "accumulate", decision: "held a while"), .init(ware: "mock", decision: "aborted"),
                ])
        }
        if id % 13 == 0 { capture.summary = nil }
        return capture
    }

    @Test func `each operator decides in files as it does in memory, alone and joined`() throws {
        let folder = folder()
        for id in 1...60 { folder.put(try CaptureFolderTests.varied(id)) }
        folder.flush()
        _ = (folder.mark(20, pinned: true, comment: nil), folder.mark(21, pinned: nil, comment: "look"))
        let all = try (1...60).reversed().map { id in
            var capture = try CaptureFolderTests.varied(id)
            if id == 20 { capture.isPinned = true }
            if id == 21 { capture.comment = "look" }
            return capture
        }
        var found = 0
        for term in CaptureFolderTests.terms {
            for text in [term, "!\(term)", "\(term) & ~hs cookie", "\(term) | ~did passed"] {
                let filter = try CaptureFilter(text)
                let expected = all.filter { filter.matches($0) }.map(\.id)
                #expect(try ids(folder, text) == expected, "\(text)")
                #expect(folder.ids(before: .max, filter: filter).sorted(by: >) == expected, "\(text)")
                if text == term, !expected.isEmpty, expected.count < all.count { found += 1 }
            }
        }
        // Terms that match all or nothing would show little.
        #expect(found > 30)
    }

    @Test func `clearing erases the bytes, and leaves what is pinned or does not match`() throws {
        let folder = folder()
        for id in 1...100 { folder.put(CaptureFolderTests.capture(id)) }
        #expect(folder.mark(7, pinned: true, comment: nil))
        #expect(folder.clear(filter: try CaptureFilter("~m post | ~hq 'field-8$'")).count == 50)
        #expect(try ids(folder) == (1...100).reversed().filter { ($0 % 2 == 0 || $0 == 7) && $0 != 8 })
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            let bytes = FileManager.default.contents(atPath: path + "/" + name) ?? Data()
            #expect(bytes.range(of: Data("content 9 ".utf8)) == nil, "\(name)")
        }
        #expect(folder.find(10)?.request == CaptureFolderTests.capture(10).request)
        #expect(folder.clear(filter: nil).count == 49)
        #expect(try ids(folder) == [7])
        folder.put(CaptureFolderTests.capture(101))
        folder.flush()
        #expect(try ids(folder) == [101, 7])
    }

    @Test func `a capture larger than a segment is kept without its content`() throws {
        let folder = folder(.mebibytes(1))
        var large = CaptureFolderTests.capture(1, 200_000)
        large.response?.content.kept = [UInt8](repeating: 1, count: 300_000)
        folder.put(large)
        folder.flush()
        let found = try #require(folder.find(1))
        #expect(found.request.content.kept.isEmpty && found.request.content.size > 200_000)
        #expect(found.request.fields == large.request.fields)
    }

    @Test func `whatever is cut off or changed in the files, the rest is there`() throws {
        var generator = SystemRandomNumberGenerator()
        for round in 0..<60 {
            try? FileManager.default.removeItem(atPath: path)
            var first: CaptureFolder? = folder(.mebibytes(1))
            for id in 1...100 { first?.put(CaptureFolderTests.capture(id)) }
            first?.close()
            first = nil
            let names = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0 != "captures.lock" }
            let file = path + "/" + (try #require(names.randomElement(using: &generator)))
            var bytes = FileManager.default.contents(atPath: file) ?? Data()
            switch round % 3 {
            case 0: bytes = bytes.prefix(Int.random(in: 0...bytes.count, using: &generator))
            case 1: bytes = Data((0..<Int.random(in: 0...5000)).map { _ in UInt8.random(in: 0...255) })
            default:
                for _ in 0..<20 where !bytes.isEmpty {
                    bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^= UInt8.random(in: 1...255)
                }
            }
            _ = FileManager.default.createFile(atPath: file, contents: bytes)
            let second = folder(.mebibytes(1))
            for id in try ids(second) {
                if let found = second.find(id) { #expect(found.request == CaptureFolderTests.capture(id).request) }
            }
            _ = second.mark(5, pinned: true, comment: "x")
            second.put(CaptureFolderTests.capture(1000))
            second.flush()
            #expect(second.find(1000) != nil, "\(round) \(file) \(second.dropped) \(second.lastId)")
            _ = second.clear(filter: nil)
            second.close()
        }
    }

    @Test func `a folder that has files of others is refused`() throws {
        let other = NSTemporaryDirectory() + "httpware-others-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: other) }
        try FileManager.default.createDirectory(
            atPath: other, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
        _ = FileManager.default.createFile(atPath: other + "/notes.txt", contents: Data("mine".utf8))
        let third = CaptureFolder(CaptureDisk(path: FilePath(other)))
        third.put(CaptureFolderTests.capture(1))
        third.flush()
        #expect(third.dropped == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: other) == ["notes.txt"])
    }

    @Test func `a store with files lists, finds, filters, marks and clears both`() throws {
        var settings = CaptureSettings()
        settings.memory = .bytes(60_000)
        let store = CaptureStore(settings, archive: folder())
        for _ in 1...200 { store.take([CaptureFolderTests.capture(0, 500)]).forEach { #expect($0 > 0) } }
        (store.archive as? CaptureFolder)?.flush()
        #expect(store.count < 100)
        #expect(store.find(1)?.request.content.size == store.find(200)?.request.content.size)
        var all: [Int] = []
        var before: Int?
        while true {
            let page = store.list(before: before, limit: 33, filter: try CaptureFilter("~u path"))
            all += page.captures.map(\.id)
            guard let next = page.next else { break }
            before = next
        }
        #expect(all == (1...200).reversed())
        #expect(try CaptureFolderTests.searched(store, "~u path").flatMap(\.self) == all)
        #expect(store.ids(filter: nil) == all)
        #expect(store.pin(2, true) && store.comment(2, "old") && store.pin(199, true) && !store.pin(999, true))
        #expect(store.list(limit: 10, filter: try CaptureFilter("~marked")).captures.map(\.id) == [199, 2])
        #expect(store.clear() == 198)
        #expect(store.ids(filter: nil) == [199, 2])
    }
}
