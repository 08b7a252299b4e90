import ArgumentParser
import HttpWare

/// `httpware token`: the credentials of a running gateway. Their tokens are shown nowhere.
struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Show, refresh or clear the credentials of a running gateway.",
        subcommands: [List.self, Refresh.self, Clear.self], defaultSubcommand: List.self)

    /// `httpware token ls`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List the credentials: state, expiry, last refresh, requests held.")

        @OptionGroup var view: AdminView

        func run() throws {
            struct All: Decodable { let credentials: [CredentialLine] }
            try view.show("/v1/credentials", as: All.self) { CredentialLine.table($0.credentials) }
        }
    }

    /// `httpware token refresh NAME`.
    struct Refresh: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "refresh", abstract: "Request a new token now, whatever failed before.")

        @OptionGroup var one: One

        func run() throws { try one.act("refresh") }
    }

    /// `httpware token clear NAME`.
    struct Clear: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear", abstract: "Forget the tokens of a credential, including those in its file.")

        @OptionGroup var one: One

        func run() throws { try one.act("clear") }
    }

    /// The options of the commands for one credential.
    struct One: ParsableArguments {
        @Argument(help: "The name of the credential.")
        var name: String
        @Flag(help: "Print JSON.")
        var json = false
        @OptionGroup var admin: AdminOption

        /// Asks the gateway for an action, such as `refresh`, and prints the credential's new state.
        func act(_ action: String) throws {
            let isName =
                !name.isEmpty
                && name.utf8.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
                    default: "-_.".utf8.contains(byte)
                    }
                }
            guard isName else { throw ValidationError("\(name) is not the name of a credential") }
            let answer = try admin.client().post("/v1/credentials/\(name)/\(action)")
            if json { Terminal.print(answer.text, end: "") }
            if json, answer.status == 200 { return }
            let line = try answer.decoded(CredentialLine.self)
            for line in CredentialLine.table([line]) { Terminal.print(line) }
        }
    }
}
