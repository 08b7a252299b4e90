import ArgumentParser
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare

/// `httpware discover`: the services that are found, and why a container is not used; or a process that writes them for a gateway.
struct DiscoverCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discover",
        abstract: "Show the services that containers and service files offer, and why one is not used.",
        discussion: """
            Asks the sources of the configuration's section discover. With --docker or --folder, it asks this source in their place.

            With --write, it stays, and keeps one service file for each service in a folder: a gateway with discover: { folder: … } serves them and needs \
            no access to the engine's socket. A process that can use that socket is root on the machine, so let this small one have it alone.
            """)

    @OptionGroup var file: ConfigurationOption
    @Option(
        help: ArgumentHelp(
            "Ask the container engine at this address: unix:/var/run/docker.sock, or tcp:host:port.",
            valueName: "address"))
    var docker: String?
    @Option(help: "The network by which containers are reached, with --docker.")
    var network: String?
    @Option(help: ArgumentHelp("Read this folder of service files.", valueName: "dir"), completion: .directory)
    var folder: String?
    @Option(
        help: ArgumentHelp("Write service files into this folder, and keep them up to date.", valueName: "dir"),
        completion: .directory)
    var write: String?
    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        if network != nil, docker == nil { throw ValidationError("--network needs --docker") }
        if write != nil, json { throw ValidationError("--write prints nothing; leave out --json") }
        if docker != nil || folder != nil, file.path != nil {
            throw ValidationError("--docker and --folder are in place of the configuration; leave out -c")
        }
        if write != nil, folder != nil { throw ValidationError("--write is for containers; leave out --folder") }
    }

    func run() throws {
        let (definition, configuration) = try definition()
        if let write { return try ServiceFiles(folder: write).keep(definition) }
        let look = try FirstLook(definition)
        let reader = ConfigurationOption.reader
        let found =
            configuration.flatMap { reader.read(again: $0, finding: look.instances).configuration?.found }
            ?? reader.found(look.instances)
        if json {
            let failures = Json.list(look.failures.map { .text($0) })
            try Terminal.result(Json.object([("found", found.json), ("failures", failures)]).prettyText)
        } else {
            for line in DiscoverCommand.table(found) { try Terminal.result(line) }
            for warning in found.warnings { Terminal.error(warning.description) }
            for failure in look.failures { Terminal.error("\(Program.name) discover: \(failure)") }
        }
        if !look.failures.isEmpty { throw ExitCode(3) }
    }

    /// Where to look, and the configuration that says so, if one does.
    private func definition() throws -> (DiscoverDefinition, GatewayConfiguration?) {
        if docker != nil || folder != nil {
            var engine: DiscoverDefinition.Docker?
            if let docker {
                do throws(OptionMistake) {
                    engine = DiscoverDefinition.Docker(socket: try EngineAddress(optionText: docker), network: network)
                } catch {
                    throw ValidationError("--docker: \(error.hint)")
                }
            }
            return (DiscoverDefinition(docker: engine, folder: folder.map { FilePath($0) }), nil)
        }
        guard file.path != nil || file.isThere else { return (DiscoverDefinition(docker: .init()), nil) }
        let result = try file.read()
        guard let configuration = result.configuration else {
            for error in result.errors { Terminal.error(error.description) }
            throw ExitCode(1)
        }
        guard let definition = configuration.discover else {
            Terminal.error(
                "\(Program.name) discover: \(try file.file()) has no section discover; write discover: { docker: {} }, or name an engine with --docker"
            )
            throw ExitCode(1)
        }
        return (definition, configuration)
    }

    /// The found containers and files, one line for each.
    static func table(_ found: FoundServices) -> [String] {
        let rows = found.instances.map { instance in
            let addresses = instance.addresses.map { "\($0)" }.joined(separator: " ")
            let state = found.reason(for: instance).map { "not used: \($0)" } ?? "used"
            return [instance.service, instance.place, addresses.isEmpty ? "-" : addresses, state].map(
                TerminalStyle.plain.shown)
        }
        return rows.isEmpty
            ? ["nothing was found"] : TextTable.lines([["SERVICE", "FOUND AS", "ADDRESS", "STATE"]] + rows)
    }
}
