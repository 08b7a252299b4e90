import Foundation
import HttpWare
import GatewayWares

/// The files of the repository that the tests of this target read.
enum Repository {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// An article of the documentation, by the name of its file.
    static func article(_ name: String) throws -> String { try text("Sources/HttpGateway/HttpGateway.docc/\(name)") }

    /// The examples that are whole configurations, in name order; what stands in a folder `NAME.d` is a part of another.
    static let configurations: [String] = {
        let names = FileManager.default.enumerator(atPath: root.appendingPathComponent("conf").path)?.allObjects ?? []
        return names.compactMap { $0 as? String }.filter {
            $0.hasSuffix(".yaml") && !$0.hasSuffix(".test.yaml") && !$0.contains(".d/")
        }.sorted()
            .map { "conf/\($0)" }
    }()

    static let wareNames = BuiltinWares.all.map { $0.name.text }
}

/// The code blocks of an article.
struct CodeBlock: CustomStringConvertible {
    let text: String
    /// Of the article, counted from 1: where the code begins.
    let line: Int

    var description: String { "line \(line)" }

    /// Those of one language, in order.
    static func all(_ language: String, in article: String) -> [CodeBlock] {
        var blocks: [CodeBlock] = []
        var open: (start: Int, lines: [String])?
        for (index, line) in article.components(separatedBy: "\n").enumerated() {
            if let block = open, line == "```" {
                blocks.append(CodeBlock(text: block.lines.joined(separator: "\n") + "\n", line: block.start))
                open = nil
            } else if open != nil {
                open?.lines.append(line)
            } else if line == "```\(language)" {
                open = (index + 2, [])
            }
        }
        return blocks
    }
}
