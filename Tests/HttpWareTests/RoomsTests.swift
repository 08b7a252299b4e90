import Foundation
import Testing

/// The rooms of module HttpWare lie on the path of a request: each may use only those to its left.
@Suite struct RoomsTests {
    private static let rooms = [
        "Loop", "Messages", "Codec", "Options", "Tls", "Chain", "Transport", "Redis", "Balance", "Exchange",
    ]
    /// The one room that wraps each C library; `CSystemShims` is no library but a shim, for Loop alone.
    private static let wrappers = [
        "CLibevent": "Loop", "CSystemShims": "Loop", "CAres": "Transport", "CNghttp2": "Codec", "CPcre2": "Options",
        "COpenSSL": "Tls", "COpenSSLShims": "Tls", "CHiredis": "Redis", "CZlib": "Codec", "CBrotli": "Codec",
        "CZstd": "Codec",
    ]

    private struct File {
        let room: String
        let name: String
        let code: String
    }

    private static func files() throws -> [File] {
        let sources = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/HttpWare")
        return try rooms.flatMap { room in
            let folder = sources.appending(path: room)
            return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
                .filter { $0.pathExtension == "swift" }
                .map { File(room: room, name: $0.lastPathComponent, code: try withoutComments($0)) }
        }
    }

    /// The text without what stands behind two slashes; a URL in a literal goes too, which does no harm here.
    private static func withoutComments(_ file: URL) throws -> String {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
            .map { line in line.range(of: "//").map { String(line[..<$0.lowerBound]) } ?? String(line) }
            .joined(separator: "\n")
    }

    @Test func `a room uses only what stands in itself and in the rooms to its left`() throws {
        let files = try RoomsTests.files()
        let declaration =
            /(?m)^(?:(?:public|final|fileprivate|private|@\w+|indirect)\s+)*(?:struct|class|enum|protocol|typealias)\s+([A-Z]\w*)/
        var homes: [String: Int] = [:]
        for (place, room) in RoomsTests.rooms.enumerated() {
            for file in files where file.room == room {
                for match in file.code.matches(of: declaration) { homes[String(match.1)] = place }
            }
        }
        #expect(homes.count > 100)
        for file in files {
            let place = try #require(RoomsTests.rooms.firstIndex(of: file.room))
            for word in Set(file.code.matches(of: /\b[A-Z]\w*/).map { String($0.0) }) {
                if let home = homes[word], home > place {
                    Issue.record("\(file.room)/\(file.name) uses \(word) of \(RoomsTests.rooms[home])")
                }
            }
        }
    }

    @Test func `a C library is imported in the one room that wraps it`() throws {
        for file in try RoomsTests.files() {
            for (library, room) in RoomsTests.wrappers where file.code.contains("import \(library)\n") {
                #expect(file.room == room, "\(file.room)/\(file.name) imports \(library)")
            }
        }
    }
}
