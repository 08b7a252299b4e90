import ArgumentParser
import Glibc
import HttpWare

/// The command line of a program: `httpware run`, `httpware check` and the other commands.
struct HttpWareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: Program.name,
        abstract: "An HTTP gateway and forward proxy whose middlewares are configured by files.",
        discussion: """
            See what a program sends:  \(Program.name) with --show -- curl https://example.com/
            The same for many, with a page:  \(Program.name) inspect
            Write a configuration:  \(Program.name) init gateway
            Serve it, and its changes:  \(Program.name) run --watch
            """,
        version: Program.current.nameAndVersion,
        subcommands: [VerifyStoreCommand.self],
        groupedSubcommands: [
            CommandGroup(
                name: "Run",
                subcommands: [
                    WithCommand.self, InspectCommand.self, ProxyCommand.self, FilesCommand.self, RunCommand.self,
                    InitCommand.self, ImportCommand.self,
                ]),
            CommandGroup(
                name: "Look at a running gateway",
                subcommands: [
                    StatusCommand.self, PageCommand.self, TraceCommand.self, ServicesCommand.self,
                    DiscoverCommand.self, HarCommand.self, UnreadCommand.self, AuditCommand.self, HealthCommand.self,
                    McpCommand.self,
                ]),
            CommandGroup(
                name: "Change a running gateway",
                subcommands: [
                    ReloadCommand.self, StopCommand.self, TokenCommand.self, CacheCommand.self, RuleCommand.self,
                    ApproveCommand.self, BreakCommand.self, MaintenanceCommand.self, OfflineCommand.self,
                    AcmeCommand.self, CaCommand.self,
                ]),
            CommandGroup(
                name: "Prove a configuration",
                subcommands: [
                    CheckCommand.self, TestCommand.self, ExplainCommand.self, DiffCommand.self, ScriptCommand.self,
                ]),
            CommandGroup(
                name: "Look up",
                subcommands: [WaresCommand.self, SchemaCommand.self, ConvertCommand.self, VersionCommand.self]),
        ])

    /// Runs the command that the command line names.
    static func start() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let mistake = CommandMistake.text(arguments, of: HttpWareCommand.self) {
            Terminal.error(mistake)
            Glibc.exit(ExitCode.validationFailure.rawValue)
        }
        // Programs of this kind accept `-v`.
        main(arguments == ["-v"] ? ["--version"] : nil)
    }
}
