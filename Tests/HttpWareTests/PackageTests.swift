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

    @Test func `an app without traits fetches no other package`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-package-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        _ = try PackageTests.manifest(in: folder.appending(path: "httpware"))
        let app = folder.appending(path: "app")
        try FileManager.default.createDirectory(at: app, withIntermediateDirectories: true)
        try #"""
        // swift-tools-version: 6.2
        import PackageDescription
        let package = Package(
            name: "app", platforms: [.macOS(.v26)], dependencies: [.package(path: "../httpware", traits: [])],
            targets: [
                .executableTarget(
                    name: "app", dependencies: [.product(name: "HttpWareClient", package: "httpware")], path: ".")
            ])
        """#.write(to: app.appending(path: "Package.swift"), atomically: true, encoding: .utf8)
        try "print(1)".write(to: app.appending(path: "main.swift"), atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["swift", "package", "--package-path", app.path, "resolve"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        let fetched = try? FileManager.default.contentsOfDirectory(atPath: app.appending(path: ".build/checkouts").path)
        #expect(fetched ?? [] == [])
        #expect(FileManager.default.fileExists(atPath: app.appending(path: ".build/workspace-state.json").path))
    }

    @Test func `the article names the C libraries that an app needs`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let manifest = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
        let article = try String(
            contentsOf: root.appending(path: "Sources/HttpWareClient/HttpWareClient.docc/HttpWareClient.md"),
            encoding: .utf8)
        let packages = manifest.matches(of: /\.apt\(\["([^"]+)"\]\)/).map { String($0.1) }
        #expect(packages.count == 13)
        for package in packages
        where !["liblmdb-dev", "libhiredis-dev", "liblua5.4-dev", "libyaml-dev"].contains(package) {
            #expect(article.contains(" \(package) "), "\(package)")
        }
    }

    @Test func `a clone has them, for the gateway's release builds`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-package-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(try PackageTests.manifest(in: folder.appending(path: "httpware")).contains("unsafeFlags"))
    }
}
