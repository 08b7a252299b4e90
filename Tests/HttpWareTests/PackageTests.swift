import Foundation
import Testing

@Suite struct PackageTests {
    /// The manifest as SwiftPM reads it in a folder.
    private static func manifest(in folder: URL) throws -> String {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let copy = folder.appending(path: "Package.swift")
        try FileManager.default.copyItem(at: root.appending(path: "Package.swift"), to: copy)
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["swift", "package", "--package-path", folder.path, "dump-package"]
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(arguments: [
        "app/.build/checkouts/httpware", "app/.build/registry/downloads/example/httpware/1.0.0",
        "shared/registry/downloads/example/httpware/1.0.0", "SourcePackages/checkouts/httpware",
    ])
    func `a dependency has no unsafe flags, wherever it came from`(place: String) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-package-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let manifest = try PackageTests.manifest(in: folder.appending(path: place))
        #expect(manifest.contains("\"name\" : \"HttpWareClient\""))
        #expect(!manifest.contains("unsafeFlags"))
    }

    @Test func `a clone has them, for the gateway's release builds`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-package-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(try PackageTests.manifest(in: folder.appending(path: "httpware")).contains("unsafeFlags"))
    }
}
