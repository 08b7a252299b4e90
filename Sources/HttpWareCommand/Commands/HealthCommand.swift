import ArgumentParser
import HttpWare

/// `httpware health`: asks a gateway whether it is ready, for container health checks without a shell.
struct HealthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health", abstract: "Ask a running gateway whether it is ready.",
        discussion: "Exit status: 0 ready, 1 starting or draining, 3 no answer.")

    @OptionGroup var admin: AdminOption

    func run() throws {
        let answer = try admin.client().get("/readyz", within: .seconds(3))
        let isAnswer = answer.status == 200 || answer.status == 503
        Terminal.print(isAnswer ? answer.text : "status \(answer.status)\n", end: "")
        if answer.status != 200 { throw ExitCode(1) }
    }
}
