import ArgumentParser

/// The command line of a program: `httpware run`, `httpware check` and the other commands.
struct HttpWareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: Program.name,
        abstract: "An HTTP gateway and forward proxy whose middlewares are configured by files.",
        version: Program.current.nameAndVersion,
        subcommands: [
            RunCommand.self,
            CheckCommand.self,
            TestCommand.self,
            ExplainCommand.self,
            DiffCommand.self,
            TraceCommand.self,
            PageCommand.self,
            HarCommand.self,
            McpCommand.self,
            CacheCommand.self,
            OfflineCommand.self, MaintenanceCommand.self, RuleCommand.self, BreakCommand.self,
            UnreadCommand.self,
            TokenCommand.self,
            ServicesCommand.self, DiscoverCommand.self,
            ProxyCommand.self,
            FilesCommand.self,
            WithCommand.self,
            InspectCommand.self,
            CaCommand.self, AcmeCommand.self,
            HealthCommand.self,
            ScriptCommand.self,
            SchemaCommand.self,
            WaresCommand.self,
            InitCommand.self,
            ImportCommand.self,
            VersionCommand.self,
            VerifyStoreCommand.self,
        ])

    /// Runs the command that the command line names.
    static func start() {
        // Programs of this kind accept `-v`.
        main(CommandLine.arguments.dropFirst() == ["-v"] ? ["--version"] : nil)
    }
}
