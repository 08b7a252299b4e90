import Foundation
import HttpWare
import Testing

@testable import Authentication

/// The output of Fixtures/make.py, made with libraries of others, and the time at which it holds.
enum Fixture {
    /// 2026-01-01T00:00:00Z.
    static let now = WallTime(seconds: 1_767_225_600)

    static func bytes(_ name: String) throws -> [UInt8] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")
        return Array(try Data(contentsOf: folder.appending(path: name)))
    }

    static func text(_ name: String) throws -> String { String(decoding: try bytes(name), as: UTF8.self) }

    static func keys() throws -> JsonWebKeySet { try JsonWebKeySet(json: bytes("jwks.json"), hasSecrets: false) }

    /// A line of tokens.txt.
    struct Token: Sendable, CustomTestStringConvertible {
        let expected: String
        let name: String
        let text: String

        var testDescription: String { name }
    }

    static func tokens() -> [Token] {
        ((try? text("tokens.txt")) ?? "").split(separator: "\n").map { line in
            let parts = line.split(separator: "|", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
            return Token(expected: parts[0], name: parts[1], text: parts[2])
        }
    }

    /// The good token of that name.
    static func good(_ name: String) throws -> String {
        struct Missing: Error {}
        guard let token = tokens().first(where: { $0.name == name }) else { throw Missing() }
        return token.text
    }
}
