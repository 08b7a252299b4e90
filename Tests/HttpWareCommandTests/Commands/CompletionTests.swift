import ArgumentParser
import Foundation
import Testing

@testable import HttpWareCommand

@Suite struct CompletionTests {
    @Test(arguments: [
        ("wares rateL", "rateLimit"), ("rule add faul", "fault"), ("init ga", "gateway"), ("tra", "trace"),
        ("run gate", "gateway.yaml"), ("check gate", "gateway.yaml"), ("run -c gate", "gateway.yaml"),
        ("explain -c gate", "gateway.yaml"), ("with -c gate", "gateway.yaml"), ("trace -c gate", "gateway.yaml"),
        ("diff gate", "gateway.yaml"), ("diff gateway.yaml ne", "next.yml"), ("har show tra", "traffic.har"),
        ("har import tra", "traffic.har"), ("har export -o tra", "traffic.har"), ("files sit", "site"),
        ("run --ui-dir sit", "site"), ("inspect --disk sit", "site"), ("ca show --dir sit", "site"),
    ])
    func `bash completes wares, uses, commands, files and folders`(typed: String, completed: String) throws {
        #expect(try Self.completions(of: typed) == [completed])
    }

    @Test func `bash offers no other file in place of a configuration`() throws {
        #expect(try Self.completions(of: "run traf").isEmpty)
    }

    /// What bash offers for the last word, in a folder with some files.
    private static func completions(of typed: String) throws -> [String] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-completion-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder.appending(path: "site"), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for name in ["gateway.yaml", "next.yml", "traffic.har", "other.txt"] {
            try Data().write(to: folder.appending(path: name))
        }
        let words = ["httpware"] + typed.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let line = words.joined(separator: " ")
        let script = """
            \(HttpWareCommand.completionScript(for: .bash))
            cd '\(folder.path)'
            COMP_WORDS=(\(line)) COMP_CWORD=\(words.count - 1) COMP_LINE='\(line)' COMP_POINT=\(line.count)
            "$(complete -p httpware | sed 's/.*-F \\([^ ]*\\).*/\\1/')" httpware '\(words[words.count - 1])' '\(words[words.count - 2])'
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let process = Process()
        process.executableURL = URL(filePath: "/bin/bash")
        process.arguments = ["--norc", "-c", script]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        // bash adds the slash of a folder itself, or a blank, where it completes for a person.
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map {
            $0.trimmingCharacters(in: CharacterSet(charactersIn: " /"))
        }
    }
}
