import ArgumentParser
import Foundation
import Testing

@testable import HttpWareCommand

@Suite struct CompletionTests {
    /// The typed text, and the completed last word.
    private static let cases = [
        ("wares rateL", "rateLimit"), ("rule add faul", "fault"), ("init ga", "gateway"), ("tra", "trace"),
        ("har sh", "show"), ("run gate", "gateway.yaml"), ("check gate", "gateway.yaml"),
        ("run -c gate", "gateway.yaml"), ("explain -c gate", "gateway.yaml"), ("with -c gate", "gateway.yaml"),
        ("trace -c gate", "gateway.yaml"), ("diff gate", "gateway.yaml"), ("diff gateway.yaml ne", "next.yml"),
        ("har show tra", "traffic.har"), ("har import tra", "traffic.har"), ("har export -o tra", "traffic.har"),
        ("files sit", "site"), ("run --ui-dir sit", "site"), ("inspect --disk sit", "site"),
        ("ca show --dir sit", "site"),
    ]

    @Test func `bash completes wares, uses, commands, files and folders`() throws {
        #expect(try bash(Self.cases.map(\.0)) == Self.cases.map(\.1))
    }

    @Test func `bash offers no other file in place of a configuration`() throws {
        #expect(try bash(["run traf"]) == [""])
    }

    @Test(.enabled(if: isInstalled("fish")))
    func `fish completes wares, uses, commands, files and folders`() throws {
        #expect(try fish(Self.cases.map(\.0)) == Self.cases.map(\.1))
    }

    @Test(.enabled(if: isInstalled("fish")))
    func `fish offers no other file in place of a configuration`() throws {
        #expect(try fish(["run traf"]) == [""])
    }

    // Where no file fits, zsh offers all files by itself.
    @Test(.enabled(if: isInstalled("zsh")))
    func `zsh completes wares, uses, commands, files and folders`() throws {
        #expect(try zsh(Self.cases.map(\.0)) == Self.cases.map(\.1))
    }

    private static func isInstalled(_ shell: String) -> Bool {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/\(shell)")
    }

    private func bash(_ lines: [String]) throws -> [String] {
        try offers(
            .bash, "/bin/bash", "--norc",
            script: { folder in
                """
                . '\(folder)/completion'
                cd '\(folder)/work'
                complete_line() {
                    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
                    COMP_POINT=${#COMP_LINE}
                    "$(complete -p httpware | sed 's/.*-F \\([^ ]*\\).*/\\1/')" httpware "${!#}" "${@: -2:1}"
                    echo "${COMPREPLY[*]}"
                }
                \(lines.map { "complete_line httpware \($0)" }.joined(separator: "\n"))
                """
            })
    }

    private func fish(_ lines: [String]) throws -> [String] {
        try offers(
            .fish, "/usr/bin/fish", "--no-config",
            script: { folder in
                """
                source '\(folder)/completion'
                cd '\(folder)/work'
                \(lines.map { "echo (complete -C 'httpware \($0)' | cut -f 1)" }.joined(separator: "\n"))
                """
            })
    }

    /// zsh completes only where a person types, so a second zsh gets a terminal.
    private func zsh(_ lines: [String]) throws -> [String] {
        try offers(
            .zsh, "/usr/bin/zsh", "-f",
            script: { folder in
                """
                cat > '\(folder)/typist' <<'END'
                fpath=('\(folder)' $fpath)
                autoload -Uz compinit
                compinit -D -u
                cd '\(folder)/work'
                complete-all() {
                    for line in \(lines.map { "'httpware \($0)'" }.joined(separator: " ")); do
                        BUFFER=$line CURSOR=$#line
                        zle complete-word
                        [[ $BUFFER != $line ]] && print -r -- ${${(z)BUFFER}[-1]} || print
                    done > '\(folder)/offers'
                    exit
                }
                zle -N complete-all
                bindkey '^T' complete-all
                END
                cp '\(folder)/completion' '\(folder)/_httpware'
                zmodload zsh/zpty
                zpty terminal 'zsh -f -i'
                zpty -w terminal "source '\(folder)/typist'"
                zpty -w -n terminal $'\\x14'
                while zpty -r terminal shown; do :; done
                cat '\(folder)/offers'
                """
            })
    }

    /// The offers of a shell for the last word of each line, in a folder with some files; a line without an offer is empty.
    private func offers(
        _ shell: CompletionShell, _ program: String, _ options: String..., script: (String) -> String
    ) throws -> [String] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-completion-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder.appending(path: "work/site"), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for name in ["gateway.yaml", "next.yml", "traffic.har", "other.txt"] {
            try Data().write(to: folder.appending(path: "work/\(name)"))
        }
        try Data(HttpWareCommand.completionScript(for: shell).utf8).write(to: folder.appending(path: "completion"))
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = options + ["-c", script(folder.path)]
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        // A shell adds the slash of a folder, or a blank, where it completes for a person.
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast().map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " /")) }
    }
}
