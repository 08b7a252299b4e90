import ArgumentParser
import GatewayConfig
import HttpWare

/// `httpware check`: every error and warning of a configuration.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check a configuration: every error and warning, exit 1 on errors.")

    @OptionGroup var file: ConfigurationOption

    func run() throws {
        let result = try file.read()
        for error in result.errors { Terminal.error(error.description) }
        guard let configuration = result.configuration else { throw ExitCode(1) }
        print(
            "ok: \(configuration.listeners.count) listeners, \(configuration.routes.count) routes, "
                + "\(configuration.services.count) services")
    }
}
