import Foundation
import Glibc
import Testing

@testable import HttpWare

/// Both ways: by openat2, and component by component.
@Suite struct OpenedFolderTests {
    private let root = FileManager.default.temporaryDirectory.appending(path: "httpware-folder-\(UUID())").path

    init() throws {
        for folder in ["inner/deep", "other", "outside"] {
            try FileManager.default.createDirectory(
                atPath: "\(root)/\(folder)", withIntermediateDirectories: true)
        }
        try FileManager.default.moveItem(atPath: "\(root)/outside", toPath: "\(root)-outside")
        for (path, text) in [("a.txt", "a"), ("inner/b.txt", "bb"), ("inner/deep/c.txt", "ccc")] {
            try text.write(toFile: "\(root)/\(path)", atomically: false, encoding: .utf8)
        }
        try "secret".write(toFile: "\(root)-outside/secret.txt", atomically: false, encoding: .utf8)
        for (link, target) in [
            ("to-a", "a.txt"), ("inner/up", "../a.txt"), ("inner/self", "../inner/./deep/../b.txt"),
            ("folder", "inner"), ("chain", "folder/up"), ("out", "../\(root.split(separator: "/").last ?? "")-outside"),
            ("inner/out", "../../\(root.split(separator: "/").last ?? "")-outside/secret.txt"),
            ("absolute", "\(root)/a.txt"), ("loop", "loop"), ("ping", "pong"), ("pong", "ping"), ("nowhere", "none"),
            ("above", ".."), ("slashed", "inner/"), ("file-slashed", "a.txt/"), ("process", "/proc/self/root"),
        ] {
            try FileManager.default.createSymbolicLink(atPath: "\(root)/\(link)", withDestinationPath: target)
        }
        try #require(mkfifo("\(root)/fifo", 0o600) == 0)
    }

    private func clean() {
        try? FileManager.default.removeItem(atPath: root)
        try? FileManager.default.removeItem(atPath: "\(root)-outside")
    }

    private func text(_ found: OpenedFolder.Found) -> String {
        switch found {
        case .file(let file):
            if case .bytes(let bytes) = file.read(at: 0, atMost: 100) { return String(decoding: bytes, as: UTF8.self) }
            return "unreadable"
        case .unchanged: return "unchanged"
        case .folder: return "folder"
        case .absent: return "absent"
        case .forbidden: return "forbidden"
        case .wouldWait: return "would wait"
        case .failed(let code): return "failed \(code)"
        }
    }

    @Test(arguments: [false, true])
    func `paths and links lead to places beneath the folder only`(isStepwise: Bool) throws {
        defer { clean() }
        let folder = try OpenedFolder(path: root, isStepwise: isStepwise)
        let expected: [(String, String)] = [
            ("a.txt", "a"), ("inner/b.txt", "bb"), ("inner/deep/c.txt", "ccc"), (".", "folder"), ("inner", "folder"),
            ("inner/", "folder"), ("inner/deep", "folder"), ("none", "absent"), ("inner/none", "absent"),
            ("a.txt/", "absent"), ("a.txt/b", "absent"), ("to-a", "a"), ("inner/up", "a"), ("inner/self", "bb"),
            ("folder", "folder"), ("folder/b.txt", "bb"), ("folder/deep/c.txt", "ccc"), ("chain", "a"),
            ("slashed", "folder"), ("slashed/b.txt", "bb"), ("file-slashed", "absent"),
            ("out", "absent"), ("out/secret.txt", "absent"), ("inner/out", "absent"), ("absolute", "absent"),
            ("loop", "absent"), ("ping", "absent"), ("ping/a.txt", "absent"), ("nowhere", "absent"),
            ("above", "absent"), ("above/\(root.split(separator: "/").last ?? "")/a.txt", "absent"),
            ("..", "absent"), ("inner/../a.txt", "a"), ("inner/../../a.txt", "absent"), ("process", "absent"),
            ("process/etc/passwd", "absent"), ("fifo", "absent"), ("/etc/passwd", "absent"), ("", "absent"),
            (String(repeating: "x", count: 300), "absent"), (String(repeating: "x/", count: 3000), "absent"),
        ]
        for (path, what) in expected {
            #expect(text(folder.find(Array(path.utf8), waits: true)) == what, "\(path)")
        }
        #expect(text(folder.find(Array("a.txt\0".utf8), waits: true)) == "absent")
    }

    @Test(arguments: [false, true])
    func `a file that is as known is not opened again`(isStepwise: Bool) throws {
        defer { clean() }
        let folder = try OpenedFolder(path: root, isStepwise: isStepwise)
        guard case .file(let file) = folder.find(Array("a.txt".utf8), waits: true) else {
            Issue.record("no file")
            return
        }
        #expect(text(folder.find(Array("a.txt".utf8), waits: true, known: file.status)) == "unchanged")
        try "other".write(toFile: "\(root)/a.txt", atomically: true, encoding: .utf8)
        #expect(text(folder.find(Array("a.txt".utf8), waits: true, known: file.status)) == "other")
    }

    @Test func `without openat2 nothing is looked for on a loop`() throws {
        defer { clean() }
        let folder = try OpenedFolder(path: root, isStepwise: true)
        #expect(text(folder.find(Array("a.txt".utf8), waits: false)) == "would wait")
    }

    @Test(arguments: [false, true])
    func `the folder stays the one that was opened`(isStepwise: Bool) throws {
        defer { clean() }
        let folder = try OpenedFolder(path: root, isStepwise: isStepwise)
        try FileManager.default.moveItem(atPath: root, toPath: "\(root)-outside/moved")
        #expect(text(folder.find(Array("inner/b.txt".utf8), waits: true)) == "bb")
    }

    @Test func `a list has files, folders and links, and ends where it is cut`() throws {
        defer { clean() }
        let folder = try OpenedFolder(path: "\(root)/inner", isStepwise: false)
        let (entries, isCut) = try #require(folder.entries(atMost: 100) { _ in true })
        let names = entries.map { String(decoding: $0.name, as: UTF8.self) }.sorted()
        #expect(names == ["b.txt", "deep", "out", "self", "up"])
        #expect(!isCut)
        #expect(entries.filter(\.isFolder).map { String(decoding: $0.name, as: UTF8.self) } == ["deep"])
        #expect(entries.first { $0.name == Array("b.txt".utf8) }?.size == 2)
        #expect(entries.first { $0.name == Array("out".utf8) }?.size == nil)
        let cut = try #require(folder.entries(atMost: 2) { $0 != Array("up".utf8) })
        #expect(cut.entries.count == 2)
        #expect(cut.isCut)
    }

    @Test func `a folder that does not exist cannot be opened`() {
        defer { clean() }
        #expect(throws: SystemError("open", code: ENOENT)) { try OpenedFolder(path: "\(root)/none") }
        #expect(throws: SystemError("open", code: ENOTDIR)) { try OpenedFolder(path: "\(root)/a.txt") }
    }

    // MARK: Files

    @Test func `a part that was just written is in memory, and what lies behind the end is not`() throws {
        defer { clean() }
        let content = [UInt8]((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try Data(content).write(to: URL(filePath: "\(root)/large"))
        let folder = try OpenedFolder(path: root)
        guard case .file(let file) = folder.find(Array("large".utf8), waits: true) else {
            Issue.record("no file")
            return
        }
        #expect(file.size == 300_000)
        guard case .bytes(let middle) = file.read(at: 100_000, atMost: 70_000) else {
            Issue.record("unreadable")
            return
        }
        #expect(middle == Array(content[100_000..<170_000]))
        #expect(file.isCached(0..<300_000))
        #expect(file.isCached(4095..<4097))
        #expect(!file.isCached(0..<400_000))
        #expect(truncate("\(root)/large", 1000) == 0)
        #expect(!file.isCached(0..<300_000))
        if case .end = file.read(at: 1000, atMost: 10) {} else { Issue.record("bytes behind the end") }
        if case .bytes(let rest) = file.read(at: 990, atMost: 100) { #expect(rest.count == 10) }
    }

    @Test func `a socket gets the part of the file, and a file that became shorter fails`() throws {
        defer { clean() }
        let content = [UInt8]((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try Data(content).write(to: URL(filePath: "\(root)/large"))
        guard case .file(let file) = try OpenedFolder(path: root).find(Array("large".utf8), waits: true) else {
            Issue.record("no file")
            return
        }
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        defer { for end in ends { Socket.close(end) } }
        let sent = FileOnItsWay(file, 5..<200_000)
        var got: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        for _ in 0..<1000 where got.count < 199_995 {
            if sent.count > 0 { _ = sent.drain(to: ends[0]) }
            let count = read(ends[1], &buffer, buffer.count)
            if count > 0 { got += buffer[..<count] }
        }
        #expect(got == Array(content[5..<200_000]))
        #expect(sent.count == 0)
        let cut = FileOnItsWay(file, 100_000..<300_000)
        #expect(truncate("\(root)/large", 100_000) == 0)
        #expect(cut.drain(to: ends[0]) == .failed(ENODATA))
    }
}
