import Foundation
import HttpWare
import Testing

@testable import GatewayWares

@Suite struct FileTableTests {
    /// An entry for a file of this number of bytes.
    private func entry(_ size: Int) throws -> FileEntry {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-table-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(repeating: 1, count: size).write(to: folder.appending(path: "f"))
        guard case .file(let file) = try OpenedFolder(path: folder.path).find(Array("f".utf8), waits: true) else {
            throw CancellationError()
        }
        let known = try #require(try KnownFile(file, Array("f".utf8), waits: true))
        return FileEntry(
            whole: known, coded: [], type: "text/plain", cacheControl: nil, now: WallTime(seconds: 4_000_000_000))
    }

    @Test func `files that are asked for stay, and the others go, when there is too much`() throws {
        let table = FileTable()
        let small = try entry(10)
        table.remember(small, "hot", at: 0)
        for number in 0..<5000 {
            table.remember(small, "\(number)", at: 0)
            if number % 500 == 0 { table.remember(small, "hot", at: Int64(number)) }
        }
        #expect(table.held("hot")?.lookedAt == 4500)
        #expect(table.held("0") == nil)
        #expect(table.held("4999") != nil)
        #expect((0..<5000).count { table.held("\($0)") != nil } <= 2048)
    }

    @Test func `open files are bounded, and large ones are not kept`() throws {
        let table = FileTable()
        let open = try entry(100_000)
        #expect(open.cost.files == 1)
        for number in 0..<1000 { table.remember(open, "\(number)", at: 0) }
        #expect((0..<1000).count { table.held("\($0)") != nil } <= 256)
        table.remember(try entry(2 << 20), "large", at: 0)
        #expect(table.held("large") == nil)
    }

    @Test func `contents are bounded in bytes`() throws {
        let table = FileTable()
        let content = try entry(32 << 10)
        #expect(content.cost.files == 0)
        for number in 0..<2000 { table.remember(content, "\(number)", at: 0) }
        #expect((0..<2000).count { table.held("\($0)") != nil } * (32 << 10) <= 16 << 20)
    }

    @Test func `a file that no client asks for is released within two minutes of others`() throws {
        let table = FileTable()
        let small = try entry(10)
        let minute: Int64 = 61_000_000_000
        table.remember(small, "once", at: 0)
        table.remember(small, "other", at: minute)
        #expect(table.held("once") != nil)
        table.remember(small, "other", at: 3 * minute)
        #expect(table.held("once") == nil)
        table.forget("other")
        #expect(table.held("other") == nil)
    }
}
