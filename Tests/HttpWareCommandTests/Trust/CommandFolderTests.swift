import Foundation
import Glibc
import HttpWare
import Testing

@testable import HttpWareCommand

@Suite final class CommandFolderTests {
    private let place = FileManager.default.temporaryDirectory.appending(path: "httpware-test-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: place) }

    private func rights(_ path: String) throws -> Int {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return Int(status.st_mode & 0o777)
    }

    @Test(
        arguments: [
            (0o600, 0o600), (0o644, 0o644), (0o640, 0o600), (0o400, 0o600), (0o664, 0o644), (0o604, 0o600),
            (0o755, 0o644),
        ] as [(mode_t, Int)])
    func `a copy of a user's file is readable by no more users than the file`(rights: mode_t, expected: Int) throws {
        let own = place.appending(path: "wgetrc").path
        try Data("http_password = hunter2\n".utf8).write(to: URL(filePath: own))
        chmod(own, rights)
        let original = CommandFolder.Original(own)
        #expect(original.text == "http_password = hunter2\n")
        let folder = try CommandFolder()
        defer { folder.remove() }
        let copy = FilePath.joined(folder.path, "wgetrc")
        try folder.write(Array(original.text.utf8), to: copy, rights: original.rights)
        #expect(try self.rights(copy) == expected)
    }

    @Test func `a file that is missing has no secrets, and certificates are for all`() throws {
        let original = CommandFolder.Original(place.appending(path: "none").path)
        #expect((original.text, original.rights) == ("", 0o644))
        let folder = try CommandFolder()
        defer { folder.remove() }
        let file = FilePath.joined(folder.path, "bundle.pem")
        try folder.write(Array("pem".utf8), to: file)
        #expect(try rights(file) == 0o644)
        #expect(throws: SystemError.self) { try folder.write([], to: file) }
    }

    @Test func `all files of an environment keep the rights of what they were made from`() throws {
        let home = place.path
        for name in [".wgetrc", "apt.conf"] {
            try Data("password = hunter2\n".utf8).write(to: URL(filePath: "\(home)/\(name)"))
            chmod("\(home)/\(name)", 0o600)
        }
        try CertificateAuthority.make(in: "\(home)/ca", name: "test")
        let authority = try CertificateAuthority.shared(folder: "\(home)/ca")
        let folder = try CommandFolder()
        defer { folder.remove() }
        let environment = CommandEnvironment(
            host: "127.0.0.1", port: 1, files: CommandEnvironment.Files(folder: folder.path), isTrusting: true)
        try folder.write(
            for: environment, authority: authority, user: ["HOME": home, "APT_CONFIG": "\(home)/apt.conf"]
        ) { _ in }
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let path = FilePath.joined(folder.path, name)
            let bytes = try Data(contentsOf: URL(filePath: path))
            let isSecret = bytes.range(of: Data("hunter2".utf8)) != nil
            #expect(try rights(path) == (isSecret ? 0o600 : 0o644), "\(name)")
        }
    }
}
