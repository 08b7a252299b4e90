import ArgumentParser
import CSystemShims
import GatewayConfig
import HttpGateway
import HttpWare

/// `httpware version`.
struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "version", abstract: "Print the version and commit, and the versions of the loaded libraries.")

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let commit = String(cString: csystem_commit())
        let libraries = [
            ("libevent", EventLoop.libraryVersion), ("c-ares", Resolver.libraryVersion),
            ("PCRE2", Pattern.libraryVersion), ("OpenSSL", TlsContext.libraryVersion),
        ]
        if json {
            let own = Program.current.version.map { [("programVersion", ConfigNode.text($0))] } ?? []
            let answer: [(String, ConfigNode)] =
                [("program", .text(Program.name))] + own + [
                    ("version", .text(Gateway.version)), ("commit", .text(commit)),
                    ("libraries", .map(libraries.map { ($0.0, .text($0.1)) })),
                ]
            try Terminal.result(ConfigNode.map(answer).prettyJson)
        } else {
            let lines = Program.current.versions + [("commit", commit)] + libraries
            try Terminal.result(lines.map { $0.1.isEmpty ? $0.0 : "\($0.0) \($0.1)" }.joined(separator: "\n"))
        }
    }
}
