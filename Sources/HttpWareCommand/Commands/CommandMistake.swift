import ArgumentParser
import HttpWare

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

    /// A sentence about the first such word, with the command that was probably meant; `nil` if every word is right.
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
