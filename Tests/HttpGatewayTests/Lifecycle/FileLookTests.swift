import Foundation
import Testing

@testable import HttpGateway

@Suite struct FileLookTests {
    /// A folder of the test's own, removed with it.
    private final class Folder {
        let path: String

        init() throws {
            path = NSTemporaryDirectory() + "httpware-" + UUID().uuidString
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ name: String, _ text: String = "") throws {
            let file = URL(fileURLWithPath: path + "/" + name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }

        func link(_ name: String, to target: String) throws {
            try FileManager.default.createSymbolicLink(atPath: path + "/" + name, withDestinationPath: target)
        }

        func rename(_ name: String, to other: String) { Glibc.rename(path + "/" + name, path + "/" + other) }
    }

    @Test func `a file that is written, replaced, removed or made is another`() throws {
        let folder = try Folder()
        try folder.write("a", "one")
        var looks: [FileLook] = []
        func look() { looks.append(FileLook(paths: [folder.path + "/a", folder.path + "/absent"])) }
        look()
        try folder.write("a", "other")
        look()
        try folder.write("b", "other")
        folder.rename("b", to: "a")
        look()
        try folder.write("absent")
        look()
        try FileManager.default.removeItem(atPath: folder.path + "/a")
        look()
        for (before, after) in zip(looks, looks.dropFirst()) { #expect(before != after) }
        look()
        #expect(looks[looks.count - 1] == looks[looks.count - 2])
    }

    @Test func `files that match a pattern count, and files beside it do not`() throws {
        let folder = try Folder()
        try folder.write("conf.d/a.yaml")
        let patterns = [folder.path + "/conf.d/*.yaml"]
        let before = FileLook(patterns: patterns)
        try folder.write("conf.d/a.log")
        #expect(FileLook(patterns: patterns) == before)
        try folder.write("conf.d/b.yaml")
        #expect(FileLook(patterns: patterns) != before)
    }

    @Test func `the folders of links on the way are watched, and the last one that is there`() throws {
        let folder = try Folder()
        let root = folder.path
        try folder.write("releases/1/conf/a.yaml")
        try folder.link("current", to: "releases/1")
        try folder.link("short", to: root + "/current/conf")
        #expect(
            FileLook(paths: [root + "/short/a.yaml"]).directories == [root, root + "/releases/1/conf"])
        #expect(FileLook(paths: [root + "/none/of/these"]).directories == [root])
        try folder.link("round", to: "round")
        #expect(FileLook(paths: [root + "/round/a"]).directories.contains(root))
        #expect(FileLook(patterns: [root + "/none/*.yaml"]).directories == [root])
        #expect(
            FileLook(patterns: [root + "/rel*/*/conf/*.yaml"]).directories
                == [root, root + "/releases", root + "/releases/1/conf"])
    }

    @Test func `changes between the look before and the reading are found`() throws {
        let folder = try Folder()
        try folder.write("a", "one")
        let paths = [folder.path + "/a"]
        let before = FileLook(paths: paths)
        try folder.write("a", "other")
        let now = FileLook(paths: paths)
        #expect(now.asRead(after: before) != now)
        #expect(now.asRead(after: now) == now)
        // A file that was not known before, and changed since: it is unknown which of its contents was read.
        let late = FileLook()
        try folder.write("a", "third")
        let then = FileLook(paths: paths)
        #expect(then.asRead(after: late) != then)
    }
}
