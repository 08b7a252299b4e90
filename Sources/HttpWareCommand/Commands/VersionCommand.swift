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
    @Flag(help: "Print every loaded C library with its version and its file.")
    var libraries = false

    func run() throws {
        if libraries && !json { return try Terminal.result(LoadedLibrary.table(of: LoadedLibrary.all)) }
        let commit = String(cString: csystem_commit())
        let named = [
            ("libevent", EventLoop.libraryVersion), ("c-ares", Resolver.libraryVersion),
            ("PCRE2", Pattern.libraryVersion), ("OpenSSL", TlsContext.libraryVersion),
        ]
        if json {
            let own = Program.current.version.map { [("programVersion", ConfigNode.text($0))] } ?? []
            var answer: [(String, ConfigNode)] =
                [("program", .text(Program.name))] + own + [
                    ("version", .text(Gateway.version)), ("commit", .text(commit)),
                    ("libraries", .map(named.map { ($0.0, .text($0.1)) })),
                ]
            if libraries { answer.append(("loaded", .list(LoadedLibrary.all.map(\.node)))) }
            try Terminal.result(ConfigNode.map(answer).prettyJson)
        } else {
            let lines = Program.current.versions + [("commit", commit)] + named
            try Terminal.result(lines.map { $0.1.isEmpty ? $0.0 : "\($0.0) \($0.1)" }.joined(separator: "\n"))
        }
    }
}

extension LoadedLibrary {
    fileprivate var node: ConfigNode {
        .map([("name", .text(name)), ("version", .text(version)), ("path", .text(path))])
    }
}
