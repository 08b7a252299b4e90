import Foundation

@testable import HttpWare

/// A file of credentials in a folder of its own, which goes with it.
final class CredentialFile: Sendable {
    let path: String
    private let folder: URL

    init(_ text: String, named name: String = "file") throws {
        folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appending(path: name).path
        try write(text)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func write(_ text: String) throws { try Data(text.utf8).write(to: URL(filePath: path)) }

    /// The path as an option.
    var option: ConfigNode { ConfigNode(.scalar(path, isQuoted: true)) }
}
