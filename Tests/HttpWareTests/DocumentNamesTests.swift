import Foundation
import Testing

/// Nothing in the repository points to a document that is not in it.
@Suite struct DocumentNamesTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// A name such as `README` with its ending, in capitals.
    private static var pattern: Regex<Substring> { /\b[A-Z][A-Z0-9_]*\.md\b/ }

    /// The names in a text that no file of the repository has, each with its line.
    private static func strangers(in text: String, known: Set<String>) -> [(name: String, line: Int)] {
        text.components(separatedBy: "\n").enumerated().flatMap { index, line in
            line.matches(of: pattern).map { (String($0.0), index + 1) }.filter { !known.contains($0.0) }
        }
    }

    /// The files of the folders that people write; what fuzzing and building leave there is not among them.
    private static func files() throws -> [URL] {
        var files = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map { root.appending(path: $0) }
        for folder in ["Sources", "Tests", "conf", "docker"] {
            let walk = FileManager.default.enumerator(
                at: root.appending(path: folder), includingPropertiesForKeys: [.isRegularFileKey])
            for case let file as URL in try #require(walk, "\(folder) is missing") {
                if ["corpus", "__pycache__"].contains(file.lastPathComponent) {
                    walk?.skipDescendants()
                } else if try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true {
                    files.append(file)
                }
            }
        }
        return files
    }

    @Test func `every document that a file names is in the repository`() throws {
        let files = try DocumentNamesTests.files()
        let known = Set(files.map(\.lastPathComponent).filter { $0.hasSuffix(".md") })
        #expect(known.contains("README.md"))
        var read = 0
        for file in files {
            let content = try Data(contentsOf: file)
            read += 1
            guard content.range(of: Data(".md".utf8)) != nil else { continue }
            let text = String(decoding: content, as: UTF8.self)
            for (name, line) in DocumentNamesTests.strangers(in: text, known: known) {
                Issue.record("\(file.path):\(line) names \(name), which is not in the repository")
            }
        }
        #expect(read > 1000)
    }

    @Test func `a document that is missing is found, and one that exists is not`() {
        let text = "see README\u{2E}md\nand NOTES\u{2E}md §4, or \u{60}make.md\u{60}"
        let found = DocumentNamesTests.strangers(in: text, known: ["README.md"])
        #expect(found.map(\.name) == ["NOTES\u{2E}md"] && found.map(\.line) == [2])
    }
}
