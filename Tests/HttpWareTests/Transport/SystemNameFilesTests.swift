import Foundation
import Testing

@testable import HttpWare

@Suite final class SystemNameFilesTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-names-\(UUID())")

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try write("nameserver 192.0.2.1\n", to: "servers")
        try write("192.0.2.2 a.test\n", to: "hosts")
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func path(_ name: String) -> String { folder.appending(path: name).path }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: folder.appending(path: name))
    }

    private func look(_ servers: String = "servers", _ hosts: String = "hosts") -> SystemNameFiles {
        SystemNameFiles(servers: path(servers), hosts: path(hosts))
    }

    @Test func `files that nothing changed are equal in each look`() {
        let first = look()
        #expect(first.servers != nil && first.hosts != nil)
        #expect(look() == first)
    }

    @Test(arguments: ["servers", "hosts"])
    func `a changed, replaced or missing file is a change`(name: String) throws {
        let first = look()
        let handle = try FileHandle(forWritingTo: folder.appending(path: name))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("more\n".utf8))
        try handle.close()
        let second = look()
        #expect(second != first)

        // A new file with the same text and the same time of its content.
        let text = try Data(contentsOf: folder.appending(path: name))
        try text.write(to: folder.appending(path: "new"))
        let attributes = try FileManager.default.attributesOfItem(atPath: path(name))
        try FileManager.default.setAttributes(
            [.modificationDate: attributes[.modificationDate] ?? Date()], ofItemAtPath: path("new"))
        #expect(rename(path("new"), path(name)) == 0)
        let third = look()
        #expect(third != second)

        try FileManager.default.removeItem(atPath: path(name))
        let fourth = look()
        #expect(fourth != third && (name == "hosts" ? fourth.hosts : fourth.servers) == nil)
        #expect(look() == fourth)
    }

    @Test func `a link that leads to another file is a change`() throws {
        try write("nameserver 192.0.2.3\n", to: "other")
        try FileManager.default.createSymbolicLink(atPath: path("link"), withDestinationPath: path("servers"))
        let first = look("link")
        #expect(first == look("servers"))
        try FileManager.default.removeItem(atPath: path("link"))
        try FileManager.default.createSymbolicLink(atPath: path("link"), withDestinationPath: path("other"))
        #expect(look("link") != first && look("link") == look("other"))
    }

    @Test func `the two files do not stand for each other`() {
        #expect(look("servers", "hosts") != look("hosts", "servers"))
    }
}
