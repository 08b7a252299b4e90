import Foundation
import Glibc
import Testing

@testable import HttpWare

@Suite final class PrivateFileTests {
    private let folder = NSTemporaryDirectory() + "private-\(UUID().uuidString)"

    init() throws { try PrivateFile.makeFolders(folder) }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    private func rights(_ path: String) -> mode_t {
        var status = Glibc.stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    @Test func `a file is written whole, only for its user, and nothing is left beside it`() throws {
        let path = folder + "/a"
        for length in [0, 1, 100, 3 << 20] {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
            try PrivateFile.write(bytes, to: path)
            #expect(try PrivateFile.content(path, upTo: 4 << 20) == bytes)
            #expect(rights(path) == 0o600 && names == ["a"])
        }
    }

    @Test func `a step that fails leaves the former file`() throws {
        let path = folder + "/a"
        try PrivateFile.write([1], to: path)
        #expect(throws: SystemError.self) {
            try PrivateFile.write(to: path) { _ throws(SystemError) in
                throw SystemError("write", code: ENOSPC)
            }
        }
        #expect(throws: SystemError("link", code: EEXIST)) {
            try PrivateFile.write([2], to: path, replaces: false)
        }
        #expect(throws: SystemError("open", code: ENOENT)) {
            try PrivateFile.write([2], to: folder + "/b/c")
        }
        try PrivateFile.makeFolders(folder + "/d")
        #expect(throws: SystemError("rename", code: EISDIR)) {
            try PrivateFile.write([2], to: folder + "/d")
        }
        #expect(try PrivateFile.content(path, upTo: 1) == [1] && names.sorted() == ["a", "d"])
    }

    @Test func `content over the limit is refused`() throws {
        try PrivateFile.write([1, 2, 3], to: folder + "/a")
        #expect(throws: SystemError("read", code: EFBIG)) {
            try PrivateFile.content(folder + "/a", upTo: 2)
        }
    }

    @Test func `a secret is read from a regular file that only its user can read`() throws {
        let path = folder + "/a"
        try PrivateFile.write([1, 2], to: path)
        #expect(PrivateFile.read(path) == [1, 2])
        symlink(path, folder + "/link")
        #expect(PrivateFile.read(folder + "/link") == nil && PrivateFile.read(folder) == nil)
        chmod(path, 0o640)
        #expect(PrivateFile.read(path) == nil)
        try PrivateFile.write([UInt8](repeating: 1, count: 257), to: path)
        #expect(PrivateFile.read(path) == nil)
    }

    @Test func `folders are made with their parents`() throws {
        try PrivateFile.makeFolder(folder + "/x/y/z")
        #expect(rights(folder + "/x") == 0o700 && rights(folder + "/x/y/z") == 0o700)
        try PrivateFile.makeFolder(folder + "/x/y/z")
        try PrivateFile.write([], to: folder + "/file")
        #expect(throws: SystemError("mkdir", code: ENOTDIR)) {
            try PrivateFile.makeFolder(folder + "/file/x")
        }
        #expect(throws: SystemError("mkdir", code: ENOTDIR)) {
            try PrivateFile.makeFolder(folder + "/file")
        }
    }

    @Test func `a lock is held once`() throws {
        let held = try #require(try PrivateFile.tryLock(folder + "/lock"))
        #expect(try PrivateFile.tryLock(folder + "/lock") == nil)
        close(held)
        let again = try #require(try PrivateFile.tryLock(folder + "/lock"))
        close(again)
    }
}
