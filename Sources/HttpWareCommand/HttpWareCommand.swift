import ArgumentParser

/// The command line. RFC-free; CONFIG of the repository's documentation is the contract.
@main struct HttpWareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "httpware",
        abstract: "An HTTP gateway and forward proxy whose middlewares are configured by files.",
        subcommands: [RunCommand.self, CheckCommand.self, ProxyCommand.self, VersionCommand.self])
}
