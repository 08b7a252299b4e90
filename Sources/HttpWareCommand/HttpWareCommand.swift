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
                    DiscoverCommand.self, HarCommand.self, UnreadCommand.self, HealthCommand.self, McpCommand.self,
                ]),
            CommandGroup(
                name: "Change a running gateway",
                subcommands: [
                    ReloadCommand.self, StopCommand.self, TokenCommand.self, CacheCommand.self, RuleCommand.self,
                    BreakCommand.self, MaintenanceCommand.self, OfflineCommand.self, AcmeCommand.self, CaCommand.self,
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

/// Words in the place of a command that name none.
enum CommandMistake {
    /// The commands that users of other programs write.
    private static let habits = [
        "start": "run", "serve": "run", "up": "run", "daemon": "run", "validate": "check", "lint": "check",
        "verify": "check", "configtest": "check", "restart": "reload", "quit": "stop", "kill": "stop", "down": "stop",
        "shutdown": "stop", "log": "trace", "logs": "trace", "tail": "trace", "ps": "status", "info": "status",
        "top": "status", "ui": "page", "web": "page", "dashboard": "page", "open": "page", "exec": "with",
        "wrap": "with", "shell": "with", "new": "init", "create": "init", "adapt": "import", "migrate": "import",
        "docs": "wares", "middlewares": "wares", "plugins": "wares", "compare": "diff", "plan": "diff",
        "trust": "ca", "cert": "ca", "certs": "acme", "purge": "cache", "login": "token", "tokens": "token",
        "fmt": "convert", "format": "convert", "service": "services", "upstreams": "services", "rules": "rule",
        "mock": "with", "record": "inspect", "dump": "inspect", "mitm": "inspect", "debug": "inspect",
    ]

    /// Names the first such word, and the command that was probably meant; `nil` if there is none.
    static func text(_ arguments: [String], of root: any ParsableCommand.Type) -> String? {
        var command: any ParsableCommand.Type = root
        var path = [Program.name]
        for word in arguments {
            let commands = command.configuration.subcommands
            if let named = commands.first(where: { isName(word, of: $0) }) {
                command = named
                path.append(word)
                continue
            }
            let isCommand = !word.hasPrefix("-") && word != "help" && command.configuration.defaultSubcommand == nil
            guard !commands.isEmpty, isCommand else { return nil }
            let names = commands.filter { $0.configuration.shouldDisplay }.compactMap { $0.configuration.commandName }
            let habit = path.count == 1 ? habits[word.lowercased()] : nil
            let hint = habit.map { "; did you mean \"\($0)\"?" } ?? didYouMean(word, among: names)
            let shown = path.joined(separator: " ")
            return "\(shown) has no command \(word.quotedForErrors)\(hint)\nSee \(shown) --help."
        }
        return nil
    }

    private static func isName(_ word: String, of command: any ParsableCommand.Type) -> Bool {
        command.configuration.commandName == word || command.configuration.aliases.contains(word)
    }
}
