import ArgumentParser
import Dispatch
import FoundationEssentials
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare
import Jail
import Wares

/// `httpware with -- COMMAND …`: runs a command behind a forward proxy.
struct WithCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "with", abstract: "Run a command whose requests go through a forward proxy.",
        usage: """
            \(Program.name) with [--show] [--inspect] [--tunnel] [--only <host>] -- <command> ...
            \(Program.name) with [--show] [--inspect] --config <config> -- <command> ...
            \(Program.name) with --jail [--show] [--inspect] [--expose <port>] [--only <host>] -- <command> ...
            \(Program.name) with [--show] [--inspect] [--only <host>] --browser <browser> <url> [-- <arguments> ...]
            """,
        discussion: """
            The proxy listens on a free port of 127.0.0.1 while the command runs, and reads what passes in TLS as well. Its \
            certificates are signed by an authority of this user, which is made at the first run. The environment of the \
            command names the proxy and the authority for curl, wget, git, Python, Node, Java, Perl, apt-get and others; \
            certificates and options that you set yourself are kept beside them.

            With --tunnel, TLS passes unread. With -c the proxy is the first forward listener of that file; if a gateway \
            already runs on its address, the command uses that gateway. Without -c every request is passed on, to local \
            servers too, but not to the metadata addresses of clouds. NO_PROXY is kept; if it is not set, it is set to an \
            empty value, so that no host is left out.

            If a credential of the file has env, the command gets a placeholder of its token in that variable, and never the \
            token. A listener of its own starts then on a free port, and the other listeners of the file stay closed. Requests \
            that carry a placeholder to any other place are answered 403.

            --jail puts a wall around the command: it has a network of its own, in which every name and address leads to the \
            proxy. Programs that know no proxy go through it, too, and none reaches anything else: ports other than 80 and 443 \
            are refused, and so are UDP, private addresses and this machine, except the ports that --expose names. With -c, the \
            listener's jail says which ports are open. A listener with jail always has the wall. It needs Linux with user namespaces.

            --inspect opens the admin page on a free port of 127.0.0.1, whatever the file says, and prints its URL with a token \
            that is made for this run. On a terminal the page stays when the command has ended. With -c it always starts a gateway of its own.

            --browser starts a browser in place of a command, with a new profile that trusts the authority. It is removed \
            when the browser ends. Arguments after -- go to the browser.

            Exits with the command's exit status: 128 plus the number of the signal that ended it, 126 or 127 if \
            it could not be run.
            """)

    @Flag(help: "Print a line on standard error for each request when it ends.")
    var show = false
    @Flag(help: "Open the admin page on port 9900, or the next that is free, and print its URL on standard error.")
    var inspect = false
    @Flag(
        inversion: .prefixedNo,
        help: """
            With --inspect: whether the page stays when the command has ended, until Ctrl-C or a key. Default: if input and standard \
            error are a terminal.
            """)
    var keep: Bool?
    @Flag(help: "Put a wall around the command: it reaches nothing but the proxy.")
    var jail = false
    @Option(
        help: ArgumentHelp(
            "With --jail: a port of this machine's 127.0.0.1 that the command reaches at its own; may be repeated.",
            valueName: "port"))
    var expose: [UInt16] = []
    @Flag(help: "Let TLS pass unread.")
    var tunnel = false
    @Option(
        help: ArgumentHelp(
            "A host that the command can reach, or several with commas; others are answered 403.", valueName: "host"))
    var only: [String] = []
    @Option(help: ArgumentHelp("The largest head of a response; 256KiB without this option.", valueName: "size"))
    var responseHead: String?
    @Option(
        help: ArgumentHelp(
            "An addon for mitmproxy, which sees and changes requests and responses. Needs Python 3.11.",
            valueName: "file"),
        completion: .file())
    var addon: String?
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: "A configuration file with a forward listener; - reads standard input.",
        completion: ConfigurationOption.completion)
    var config: String?
    @Option(help: "Start this browser in place of a command: chromium or firefox.")
    var browser: Browser?
    @Argument(help: "The page that the browser opens.")
    var url: String?
    @Argument(parsing: .postTerminator, help: "The command and its arguments, after --.")
    var command: [String] = []

    func validate() throws {
        if browser == nil, command.isEmpty || url != nil {
            throw ValidationError("write the command after --, such as: \(Program.name) with -- curl …")
        }
        if keep != nil, !inspect { throw ValidationError("--keep and --no-keep are for --inspect") }
        if jail, tunnel { throw ValidationError("--tunnel is not for --jail, which reads where requests go") }
        if jail, browser != nil { throw ValidationError("--browser is not for --jail; write a command") }
        if !expose.isEmpty, !jail || config != nil {
            throw ValidationError("--expose is for --jail without -c; write jail.expose of the listener in the file")
        }
        if let problem = wall.problem { throw ValidationError("--expose: \(problem.text)") }
        if config != nil, tunnel {
            throw ValidationError("--tunnel is for runs without -c; the file says what is read")
        }
        if config != nil, responseHead != nil {
            throw ValidationError(
                "--response-head is for runs without -c; write limits.response.head of a service in the file")
        }
        if config != nil, addon != nil {
            throw ValidationError("--addon is for runs without -c; write the ware callout in the file")
        }
        if config != nil, !only.isEmpty {
            throw ValidationError("--only is for runs without -c; write a hostRule in the file")
        }
    }

    /// The wall of a run without a file, or of one whose file does not describe it.
    private var wall: ListenerJail { ListenerJail(exposing: expose.map(Int.init)) }

    func run() throws {
        // Reading files makes threads, too. A wait for standard input must be ended by Ctrl-C.
        let early = config == "-" ? nil : ChildProcess.takeSignals()
        let folder: CommandFolder
        do throws(SystemError) {
            folder = try CommandFolder()
        } catch {
            Terminal.error("\(Program.name) with: no temporary folder can be made: \(SystemError.text(of: error.code))")
            throw ExitCode(1)
        }
        defer { folder.remove() }
        let user = ProcessInfo.processInfo.environment
        if config == nil {
            try LocalProxy.trustUserCertificates(in: folder, user)
            if !tunnel { try WithCommand.makeAuthority() }
        }
        var configuration = try chosen()
        var listener = configuration.listeners[0]
        if jail || listener.jail != nil { listener = try walled(listener) }
        let run = PlaceholderRun(
            configuration.credentials.map(\.credential), chains: [listener.chain] + listener.routes.flatMap(\.chains))
        if !run.variables.isEmpty { configuration.placeholders = run }
        let child = Child(
            folder: folder, user: user, command: command, browser: browser, url: url,
            authority: listener.intercept?.authority, placeholders: run.variables,
            secrets: configuration.credentialSecrets)
        let isOwn = inspect || !run.variables.isEmpty || listener.jail != nil
        if config != nil, !isOwn, listener.bind.port != 0, WithCommand.isListening(listener.bind) {
            if show {
                Terminal.error(
                    "a gateway already runs on \(listener.bind); \(Program.name) trace -f shows its requests")
            }
            throw ExitCode(try child.run(at: listener.bind, early ?? ChildProcess.takeSignals()))
        }
        // Done before other threads are made, so that all of them leave signals to this one.
        let signals = early ?? ChildProcess.takeSignals()
        let process = try listener.jail.map { try child.jailed(by: $0, signals) }
        var served =
            config == nil && process == nil ? configuration : configuration.only(listener, at: .loopback)
        let token = InspectorToken()
        if inspect, let bind = SocketAddress(FreePort.near(9900)) {
            served = served.inspected(at: bind, token: token.secret)
        }
        let gateway = try GatewayRun.start(
            served, workers: min(2, GatewayRun.usualLoops), observes: show, takesSignals: false)
        if let process { try open(process, gateway) }
        let file = gateway.status.now.adminAddress.flatMap { token.announce(at: $0) }
        defer { file?.remove() }
        let line = ExchangeLine(style: TerminalStyle(STDERR_FILENO), showsHost: true)
        let printer =
            show
            ? gateway.records.map {
                RequestPrinter($0) {
                    if !$0.isOpeningOfReadTunnel { Terminal.error(line.text($0)) }
                } note: {
                    Terminal.error($0)
                }
            } : nil
        let ended = DispatchSemaphore(value: 0)
        DetachedThread.start {
            gateway.run()
            ended.signal()
        }
        defer {
            gateway.stop()
            ended.wait()
            printer?.finish()
        }
        guard let address = gateway.status.now.addresses.first?.address else { throw ExitCode(3) }
        let status = try process.map { child.run($0, signals) } ?? child.run(at: address, signals)
        if inspect, let page = gateway.status.now.adminAddress { wait(for: signals, status, page) }
        throw ExitCode(status)
    }

    /// The listener with a wall around its clients. The listener must read tunnels, to know where requests go.
    private func walled(_ listener: ListenerDefinition) throws -> ListenerDefinition {
        guard listener.intercept != nil else {
            Terminal.error("\(Program.name) with --jail: \(listener.name) needs intercept, which reads the requests")
            throw ExitCode(1)
        }
        return listener.jailing(by: listener.jail ?? wall)
    }

    /// Lets the connections of a process behind a wall into the gateway.
    private func open(_ process: JailedProcess, _ gateway: Gateway) throws {
        let doors = JailDoors(process)
        do {
            try gateway.accept(on: doors.hosts) { listener, descriptor, _ in doors.enter(listener, descriptor) }
        } catch {
            Terminal.error("\(Program.name) with --jail: \(error)")
            throw ExitCode(1)
        }
        gateway.keep(.max) { doors.makeGuest(for: $0) }
    }

    /// Keeps the page open after the command, if that is wanted.
    private func wait(for signals: ChildProcess.Signals, _ status: Int32, _ page: SocketAddress) {
        // In the background, the terminal belongs to another program.
        let hasKeys = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp()
        guard keep ?? (hasKeys && isatty(STDERR_FILENO) == 1) else { return }
        let name = (browser.map { "\($0)" } ?? command.first ?? "").quotedForErrors
        let how = hasKeys ? "Ctrl-C or a key ends it" : "a signal ends it"
        signals.waitForKeyOrSignal(takesKeys: hasKeys) {
            Terminal.error("\(Program.name) with: \(name) ended with \(status); http://\(page)/ stays open: \(how)")
        }
    }

    /// Reads the configuration. Its first forward listener is used.
    private func chosen() throws -> GatewayConfiguration {
        guard let config else {
            var proxy = LocalProxy(command: "with")
            if tunnel { proxy.hosts = nil }
            proxy.isWalled = jail
            proxy.only = LocalProxy.hosts(only)
            proxy.responseHead = responseHead
            proxy.addon = addon
            // The output of an addon are lines of the log.
            if !show, addon == nil { proxy.logs = "critical" }
            return try proxy.configuration()
        }
        var file = ConfigurationOption()
        file.path = config
        var result = try file.read()
        if config != "-", result.errors.contains(where: \.isAboutMissingAuthority) {
            try WithCommand.makeAuthority()
            result = try file.read()
        }
        for error in result.errors { Terminal.error(error.description) }
        guard let configuration = result.configuration else { throw ExitCode(1) }
        guard let listener = configuration.listeners.first(where: { $0.mode == .forward }) else {
            Terminal.error("\(config): there is no forward listener; write mode: forward")
            throw ExitCode(1)
        }
        return configuration.only(listener, at: listener.bind)
    }

    private static func makeAuthority() throws {
        try LocalProxy.makeAuthority(
            for: "with", hint: "programs that \(Program.name) with starts trust it, and nothing else does")
    }

    /// True if a server accepts connections at the address.
    static func isListening(_ address: SocketAddress) -> Bool {
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
}

/// The command that `with` runs, or the browser.
private struct Child {
    let folder: CommandFolder
    let user: [String: String]
    let command: [String]
    let browser: Browser?
    let url: String?
    /// The authority whose certificates the proxy shows; `nil` if it reads no tunnels.
    let authority: CertificateAuthority?
    /// The variables that hold placeholders of tokens.
    let placeholders: [String: String]
    /// The secrets of credentials, which the command must not receive.
    let secrets: [String]

    /// Makes a process behind a wall, which waits. It will run the command.
    func jailed(by jail: ListenerJail, _ signals: ChildProcess.Signals) throws -> JailedProcess {
        let (arguments, variables) = try prepared(host: "", port: 0, isWalled: true)
        let plan = JailPlan(
            ports: jail.ports.compactMap(UInt16.init(exactly:)), answersNames: jail.names == .answer,
            exposed: jail.exposed.compactMap(UInt16.init(exactly:)))
        do throws(JailError) {
            return try withUnsafePointer(to: signals.former) { mask throws(JailError) in
                try JailedProcess(arguments, environment: variables, mask: mask, plan: plan)
            }
        } catch {
            Terminal.error("\(Program.name) with --jail: \(error)")
            throw ExitCode(1)
        }
    }

    /// Lets the process behind a wall run the command, and returns its exit status.
    func run(_ process: JailedProcess, _ signals: ChildProcess.Signals) -> Int32 {
        do throws(SystemError) {
            try process.run()
            return ChildProcess(id: process.id).wait()
        } catch {
            return refused(command[0], error)
        }
    }

    /// Runs the command and returns its exit status.
    func run(at address: SocketAddress, _ signals: ChildProcess.Signals) throws -> Int32 {
        guard case .ip(let ip, let port) = address else {
            Terminal.error("\(address) is not an address that HTTP_PROXY can contain; bind the listener to 127.0.0.1")
            throw ExitCode(1)
        }
        let host = ip.isUnspecified ? "127.0.0.1" : ip.isIPv4 ? "\(ip)" : "[\(ip)]"
        let started = try prepared(host: host, port: port)
        do throws(SystemError) {
            return try ChildProcess(started.0, environment: started.1, signals).wait()
        } catch {
            return refused(started.0[0], error)
        }
    }

    private func refused(_ name: String, _ error: SystemError) -> Int32 {
        Terminal.error("\(Program.name) with: \(name): \(SystemError.text(of: error.code))")
        return error.code == ENOENT ? 127 : 126
    }

    /// Writes the files that the command reads. Returns the command with its arguments, and its environment.
    private func prepared(host: String, port: UInt16, isWalled: Bool = false) throws -> ([String], [String: String]) {
        let environment = CommandEnvironment(
            host: host, port: port, files: CommandEnvironment.Files(folder: folder.path), isTrusting: authority != nil,
            isWalled: isWalled, own: UserFiles(of: user))
        do {
            try folder.write(for: environment, authority: authority, user: user) {
                Terminal.error("\(Program.name) with: \($0)")
            }
        } catch {
            Terminal.error("\(Program.name) with: \(folder.path) cannot be written: \(error)")
            throw ExitCode(1)
        }
        var started =
            try browser?.prepared(url, command, environment, user, authority)
            ?? (command, environment.variables(user))
        if !placeholders.isEmpty {
            for (name, value) in started.1 where secrets.contains(where: { value.contains($0) }) {
                Terminal.error(
                    "\(Program.name) with: \(name) holds a secret of a credential; the command does not get it")
                started.1[name] = nil
            }
        }
        started.1.merge(placeholders) { $1 }
        return started
    }
}
