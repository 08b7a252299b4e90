import ArgumentParser
import CSystem
import GatewayConfig
import HttpGateway
import HttpWare

/// `httpware version`.
struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "version", abstract: "Print the version and commit, and the versions of the libraries that run.")

    @Flag(help: "Print JSON.")
    var json = false

    func run() {
        let commit = String(cString: csystem_commit())
        let libraries = [
            ("libevent", EventLoop.libraryVersion), ("c-ares", Resolver.libraryVersion),
            ("PCRE2", Pattern.libraryVersion),
        ]
        if json {
            let answer: ConfigNode = [
                "version": .text(Gateway.version), "commit": .text(commit),
                "libraries": .map(libraries.map { ($0.0, .text($0.1)) }),
            ]
            print(answer.prettyJson)
        } else {
            print("httpware \(Gateway.version)\ncommit \(commit)")
            for (name, version) in libraries { print("\(name) \(version)") }
        }
    }
}
