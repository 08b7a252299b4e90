import ArgumentParser
import HttpGateway
import HttpWare

/// `httpware version`.
struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "version", abstract: "Print the version, and those of the libraries that the program runs with.")

    func run() {
        print("httpware \(Gateway.version)")
        print("libevent \(EventLoop.libraryVersion)")
        print("c-ares \(Resolver.libraryVersion)")
        print("PCRE2 \(Pattern.libraryVersion)")
    }
}
