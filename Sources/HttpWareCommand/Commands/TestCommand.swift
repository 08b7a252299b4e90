import ArgumentParser
import FoundationEssentials
import GatewayConfig
import HttpGateway
import HttpWare

/// `httpware test`: runs the cases of files against a configuration.
struct TestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Run cases against a configuration, without a network and without waiting.",
        discussion: """
            A file of cases says which requests are sent, what the origin servers answer, and what must come of it. All wares of \
            the configuration run. Time passes only as the cases say, random values follow from a seed, and calls of the \
            gateway's own are answered by the cases.

            Without FILE, the cases are in the file beside the configuration: gateway.test.yaml for gateway.yaml. Without -c, \
            the configuration is the file beside the cases. Exits with 1 if a case fails or a file has errors.
            """)

    @Argument(
        help: ArgumentHelp("Files of cases.", valueName: "file"), completion: ConfigurationOption.completion)
    var files: [String] = []
    @OptionGroup var file: ConfigurationOption
    @Option(help: ArgumentHelp("Run only the cases that have this text in their names.", valueName: "name"))
    var only: String?
    @Flag(help: "Print JSON.")
    var json = false
    @Flag(help: "Print XML in the form of JUnit, for build servers.")
    var junit = false

    func validate() throws {
        if json, junit { throw ValidationError("--json and --junit are two forms; choose one") }
        if file.path == "-" {
            throw ValidationError("the configuration is read for each case, so it is not standard input")
        }
        if files.count(where: { $0 == "-" }) > 1 { throw ValidationError("standard input is named twice") }
    }

    /// Cases with the configuration that they are for.
    private struct Suite {
        var configuration: String
        var path: String
    }

    func run() throws {
        var outcomes: [CaseOutcome] = []
        var isBroken = false
        for suite in try suites() {
            guard let run = try run(suite) else {
                isBroken = true
                continue
            }
            outcomes += run
        }
        let report = CaseReport(outcomes)
        if json {
            try Terminal.result(report.json.prettyText)
        } else if junit {
            try Terminal.result(report.junit)
        } else if !outcomes.isEmpty {
            try Terminal.result(report.summary)
        }
        if let only, outcomes.isEmpty, !isBroken {
            Terminal.error("no case has \(only.quotedForErrors) in its name")
            throw ExitCode(1)
        }
        if isBroken || report.failures > 0 { throw ExitCode(1) }
    }

    private func suites() throws -> [Suite] {
        guard !files.isEmpty else {
            let configuration = try file.readableFile()
            return [Suite(configuration: configuration, path: CaseFile.path(beside: configuration))]
        }
        return try files.map { path in
            let beside = CaseFile.configuration(of: path)
            if file.path == nil, let beside, FileManager.default.fileExists(atPath: beside) {
                return Suite(configuration: beside, path: path)
            }
            return Suite(configuration: try file.readableFile(), path: path)
        }
    }

    /// The outcomes of the cases; `nil` if the file or its configuration has errors, which are printed.
    private func run(_ suite: Suite) throws -> [CaseOutcome]? {
        let environment = ProcessInfo.processInfo.environment
        let cases = CaseFile.read(path: suite.path, environment: environment)
        for error in cases.errors { Terminal.error(error.description) }
        if cases.isUnreadable { throw ExitCode(3) }
        let reader = ConfigurationReader(
            wares: Program.allWares, stores: StandInStores.all, environment: environment)
        let runner = CaseRunner { reader.read(path: suite.configuration) }
        let read = runner.configuration()
        for error in read.errors where error.severity == .error { Terminal.error(error.description) }
        if read.isUnreadable { throw ExitCode(3) }
        guard let file = cases.file, let configuration = read.configuration else { return nil }
        let notes = CaseRunner.notes(configuration)
        for note in notes { Terminal.error("note: " + note) }
        var outcomes: [CaseOutcome] = []
        for one in file.cases where only.map({ one.name.contains($0) }) ?? true {
            let outcome = runner.run(one)
            if !json, !junit { try Terminal.result(CaseReport.text(outcome)) }
            outcomes.append(outcome)
        }
        return outcomes
    }
}
