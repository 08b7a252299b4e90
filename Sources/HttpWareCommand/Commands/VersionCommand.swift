import ArgumentParser

/// `httpware version`.
struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "version", abstract: "Print the version.")

    func run() { print("httpware 0.1.0") }
}
