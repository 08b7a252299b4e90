import ArgumentParser
import FoundationEssentials
import GatewayConfig
import HttpWare
import Glibc
import HttpGateway

/// `httpware run`: the gateway, in the foreground.
struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run the gateway in the foreground.",
        discussion:
            """
            SIGTERM drains: exchanges in progress finish. A second SIGTERM stops the gateway. SIGHUP reads the configuration again. \
            SIGUSR2 starts the program again, possibly another version, and passes on the listening sockets, so no connection is refused.
            """)

    @OptionGroup var file: ConfigurationOption
    @Argument(
        help: ArgumentHelp("The configuration file, as with -c.", valueName: "file"),
        completion: ConfigurationOption.completion)
    var named: String?
    @Option(help: "The number of loops, each with a thread. Default: one per core.")
    var workers: Int?

    @Flag(help: "Reload when a file of the configuration changes, as on SIGHUP.")
    var watch = false
    @Option(
        help: ArgumentHelp(
            "Read the inspector page from this folder at each request, while you write it.", valueName: "dir"),
        completion: .directory)
    var uiDir: String?

    func validate() throws {
        if watch, try file.or(named).path == "-" {
            throw ValidationError("--watch needs a file; standard input is read once")
        }
        if let workers, !(1...1024).contains(workers) { throw ValidationError("--workers is 1 to 1024") }
    }

    func run() throws {
        let gateway = try start()
        GatewayRun.tell(gateway)
        gateway.run()
    }

    /// Reads the configuration and starts the gateway. A function of its own, so that nothing here keeps the configuration, and its
    /// wares, after a reload.
    private func start() throws -> Gateway {
        let inheritance = try GatewayRun.inheritance()
        let path = try file.or(named).readableFile()
        let (source, read) = ConfigurationSource.read(path, with: ConfigurationOption.reader)
        let result = try ConfigurationOption.readable(read)
        for error in result.errors { Terminal.error(error.description) }
        guard let configuration = result.configuration else { throw ExitCode(1) }
        // Standard input can be read only once.
        return try GatewayRun.start(
            configuration, workers: workers, source: path == "-" ? nil : source,
            reader: ConfigurationOption.reader, watches: watch,
            pageFolder: uiDir, inheriting: inheritance)
    }
}

/// Starts gateways.
enum GatewayRun {
    /// The sockets that the parent process passed on. If their description is invalid, the program ends.
    static func inheritance() throws -> Inheritance {
        do {
            return try Inheritance.take(ProcessInfo.processInfo.environment, command: CommandLine.arguments)
        } catch {
            Terminal.error("\(error)")
            throw ExitCode(3)
        }
    }

    /// The default number of loops: one for each core.
    static let usualLoops = max(1, ProcessInfo.processInfo.activeProcessorCount)

    /// Starts a gateway; ends the program if the gateway cannot listen. `command` is the name of the command that wrote
    /// the configuration and has `--listen`.
    static func start(
        _ configuration: GatewayConfiguration, workers: Int?, source: ConfigurationSource? = nil,
        reader: ConfigurationReader? = nil, watches: Bool = false, observes: Bool = false, takesSignals: Bool = true,
        pageFolder: String? = nil,
        inheriting inheritance: Inheritance = .none, for command: String? = nil
    ) throws -> Gateway {
        do {
            return try Gateway(
                configuration, loops: workers ?? usualLoops, log: GatewayLog(configuration.log), source: source,
                reader: reader, watches: watches, observes: observes, takesSignals: takesSignals,
                pageFolder: pageFolder, inheriting: inheritance)
        } catch {
            if let command, let error = error as? ListenError {
                Terminal.error("\(Program.name) \(command): \(error.sentence); choose another address with --listen")
            } else {
                Terminal.error("\(error)")
            }
            throw ExitCode(3)
        }
    }

    /// Prints the addresses of the listeners, and a request to try.
    static func tell(_ gateway: Gateway) {
        let addresses = gateway.status.now.addresses
        for listener in addresses {
            let kind = listener.mode == .forward ? "forward proxy" : "reverse gateway"
            let layer = listener.isSecure ? ", TLS" : ""
            Terminal.error("\(Program.name): \(listener.name): \(kind) on \(listener.address)\(layer)")
        }
        if let admin = gateway.status.now.adminAddress { Terminal.error("\(Program.name): admin on \(admin)") }
        for listener in addresses { Terminal.error("try: " + tryLine(listener, "\(listener.address)")) }
    }

    private static func tryLine(_ listener: GatewayStatus.Address, _ address: String) -> String {
        let scheme = listener.isSecure ? "https" : "http"
        if address.hasPrefix("unix:") { return "curl --unix-socket \(address.dropFirst(5)) \(scheme)://localhost/" }
        return listener.mode == .forward
            ? "curl -x \(scheme)://\(address) http://example.com/" : "curl -i \(scheme)://\(address)/"
    }
}
