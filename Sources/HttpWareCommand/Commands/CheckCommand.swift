import ArgumentParser
import FoundationEssentials
import GatewayConfig
import HttpGateway
import HttpWare

/// `httpware check`: every error and warning of a configuration.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check a configuration: every error and warning, exit 1 on errors.",
        discussion: """
            If a file of cases is beside the configuration, such as gateway.test.yaml for gateway.yaml, its form is checked, too; \
            \(Program.name) test runs the cases.
            """)

    @OptionGroup var file: ConfigurationOption
    @Argument(
        help: ArgumentHelp("The configuration file, as with -c.", valueName: "file"),
        completion: ConfigurationOption.completion)
    var named: String?
    @Flag(help: "Exit 1 on warnings, too.")
    var strict = false
    @Flag(help: "Print errors, warnings and their counts as JSON, on standard output.")
    var json = false
    @Flag(help: "Ask the sources of services, too, and check the labels that are found.")
    var discover = false

    func run() throws {
        let file = try file.or(named)
        var result = try file.read()
        if discover { result = result.withFoundServices(by: ConfigurationOption.reader) }
        result.errors += result.configuration?.found.warnings ?? []
        let cases = CheckCommand.cases(beside: try file.file())
        result.errors += cases?.errors ?? []
        let hasCaseErrors = cases?.errors.contains { $0.severity == .error } ?? false
        if json {
            try Terminal.result(CheckCommand.json(result).prettyJson)
        } else {
            for error in result.errors { Terminal.error(error.description) }
        }
        guard let configuration = result.configuration else { throw ExitCode(1) }
        if !json {
            for note in configuration.notes { Terminal.error("note: " + note) }
            let count = cases?.file?.cases.count
            let shown = count.map { $0 == 1 ? ", 1 case" : ", \($0) cases" } ?? ""
            if !hasCaseErrors { try Terminal.result("ok: " + CheckCommand.counts(configuration) + shown) }
        }
        if hasCaseErrors { throw ExitCode(1) }
        if strict, !result.errors.isEmpty { throw ExitCode(1) }
    }

    /// The cases beside the configuration; `nil` if there is no such file.
    private static func cases(beside path: String) -> CaseFile.Result? {
        guard path != "-" else { return nil }
        let read = CaseFile.read(
            path: CaseFile.path(beside: path), environment: ProcessInfo.processInfo.environment)
        return read.isAbsent ? nil : read
    }

    /// The numbers of parts, such as `1 listener, 2 routes, 0 services`.
    private static func counts(_ configuration: GatewayConfiguration) -> String {
        [
            (configuration.listeners.count, "listener"), (configuration.routes.count, "route"),
            (configuration.services.count, "service"),
        ].map { "\($0) \($1)" + ($0 == 1 ? "" : "s") }.joined(separator: ", ")
    }

    private static func json(_ result: ConfigurationReader.Result) -> ConfigNode {
        let errors = result.errors.count { $0.severity == .error }
        var summary: [(String, ConfigNode)] = [
            ("errors", ConfigNode(integerLiteral: errors)),
            ("warnings", ConfigNode(integerLiteral: result.errors.count - errors)),
        ]
        if let configuration = result.configuration {
            summary += [
                ("listeners", ConfigNode(integerLiteral: configuration.listeners.count)),
                ("routes", ConfigNode(integerLiteral: configuration.routes.count)),
                ("services", ConfigNode(integerLiteral: configuration.services.count)),
            ]
        }
        return ["diagnostics": .list(result.errors.map(\.json)), "summary": .map(summary)]
    }
}

extension ConfigError {
    /// The error as JSON.
    fileprivate var json: ConfigNode {
        [
            "file": .text(location.file), "line": ConfigNode(integerLiteral: location.line),
            "column": ConfigNode(integerLiteral: location.column), "severity": .text(severity.rawValue),
            "keyPath": .text(keyPath), "message": .text(message),
        ]
    }
}
