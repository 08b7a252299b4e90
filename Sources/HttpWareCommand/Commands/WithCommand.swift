import ArgumentParser
import Foundation
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare

/// `httpware with -- COMMAND …`: runs a command behind a forward proxy.
struct WithCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "with", abstract: "Run a command whose requests go through a forward proxy.",
        usage: "httpware with [--show] [--config <config>] -- <command> ...",
        discussion: """
            The proxy listens on a free port of 127.0.0.1 while the command runs; HTTP_PROXY, HTTPS_PROXY, http_proxy and \
            https_proxy name it. With -c it is the first forward listener of that file; if a gateway already runs on its \
            address, the command uses that gateway. Without -c every request is passed on, to local servers too. \
            NO_PROXY is kept; if it is not set, it is set to an empty value, so that no host is left out.

            Exits with the command's exit status: 128 plus the number of the signal that ended it, 126 or 127 if \
            it could not be run.
            """)

    @Flag(help: "Print a line on standard error for each request when it ends.")
    var show = false
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: "A configuration file with a forward listener; - reads standard input.")
    var config: String?
    @Argument(parsing: .postTerminator, help: "The command and its arguments, after --.")
    var command: [String] = []

    func validate() throws {
        if command.isEmpty { throw ValidationError("write the command after --, such as: httpware with -- curl …") }
    }

    func run() throws {
        let configuration = try chosen()
        let listener = configuration.listeners[0]
        if config != nil, listener.bind.port != 0, WithCommand.isListening(listener.bind) {
            if show {
                Terminal.error("a gateway already runs on \(listener.bind); httpware trace -f shows its requests")
            }
            throw ExitCode(try runCommand(at: listener.bind))
        }
        // Before any thread is made: all of them leave signals to this one.
        let signals = ChildProcess.takeSignals()
        let gateway = try GatewayRun.start(
            configuration.only(config == nil ? listener.reachingEverything : listener, at: .loopback),
            workers: min(2, GatewayRun.usualLoops), observes: show, takesSignals: false)
        let line = ExchangeLine(style: TerminalStyle(STDERR_FILENO))
        let printer =
            show
            ? gateway.records.map {
                RequestPrinter($0) {
                    Terminal.error(line.text($0))
                } note: {
                    Terminal.error($0)
                }
            } : nil
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            gateway.run()
            ended.signal()
        }
        defer {
            gateway.stop()
            ended.wait()
            printer?.finish()
        }
        guard let address = gateway.status.now.addresses.first?.address else { throw ExitCode(3) }
        throw ExitCode(try runCommand(at: address, signals))
    }

    /// The configuration, whose first listener is the one that is meant.
    private func chosen() throws -> GatewayConfiguration {
        guard let config else {
            return try BuiltinConfiguration.read(
                """
                version: 1
                listeners: { with: { bind: "127.0.0.1:0", mode: forward } }
                routes: [{ service: passthrough }]
                log: { level: critical }
                """, for: "with")
        }
        var file = ConfigurationOption()
        file.path = config
        let result = try file.read()
        for error in result.errors { Terminal.error(error.description) }
        guard let configuration = result.configuration else { throw ExitCode(1) }
        guard let listener = configuration.listeners.first(where: { $0.mode == .forward }) else {
            Terminal.error("\(config): there is no forward listener; write mode: forward")
            throw ExitCode(1)
        }
        return configuration.only(listener, at: listener.bind)
    }

    /// Whether a server accepts connections there.
    private static func isListening(_ address: SocketAddress) -> Bool {
        let target =
            address.address?.isUnspecified == true ? SocketAddress.loopback.with(port: address.port ?? 0) : address
        switch Socket.connect(to: target) {
        case .connected(let descriptor):
            Socket.close(descriptor)
            return true
        case .inProgress(let descriptor):
            defer { Socket.close(descriptor) }
            var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            return poll(&wanted, 1, 1000) == 1 && Socket.pendingError(descriptor) == 0
        case .failed: return false
        }
    }

    private func runCommand(at address: SocketAddress, _ signals: ChildProcess.Signals? = nil) throws -> Int32 {
        guard case .ip(let ip, let port) = address else {
            Terminal.error("\(address) is not an address that HTTP_PROXY can contain; bind the listener to 127.0.0.1")
            throw ExitCode(1)
        }
        let host = ip.isUnspecified ? "127.0.0.1" : ip.isIPv4 ? "\(ip)" : "[\(ip)]"
        let environment = WithCommand.environment(
            ProcessInfo.processInfo.environment, proxy: "http://\(host):\(port)")
        let taken = signals ?? ChildProcess.takeSignals()
        do throws(SystemError) {
            return try ChildProcess(command, environment: environment, taken).wait()
        } catch {
            Terminal.error("httpware with: \(command[0]): \(SystemError.text(of: error.code))")
            return error.code == ENOENT ? 127 : 126
        }
    }

    /// The environment with the proxy in it, in the spellings that programs look for.
    static func environment(_ environment: [String: String], proxy: String) -> [String: String] {
        var environment = environment
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] { environment[name] = proxy }
        let left = environment["NO_PROXY"] ?? environment["no_proxy"] ?? ""
        environment["NO_PROXY"] = left
        environment["no_proxy"] = environment["no_proxy"] ?? left
        return environment
    }
}
