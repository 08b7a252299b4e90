import ArgumentParser
import FoundationEssentials
import Glibc
import HttpGateway
import HttpWare

/// `httpware inspect`: a forward proxy that reads TLS, the admin page, and one line per request.
struct InspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Run a forward proxy that reads TLS, with the admin page; one line per request.",
        discussion: """
            Set the proxy in a browser or a program, and trust the certificate authority that is made at the first run: with \
            \(Program.name) ca install, or by opening http://httpware.proxy/ through the proxy. To run one command behind a proxy \
            without trusting anything, use \(Program.name) with.

            The URL of the admin page contains a token, which is made at each start. A browser keeps it in a cookie; other \
            commands of this user, such as \(Program.name) trace --admin ADDRESS, find it by the address.

            HOST and GLOB are patterns such as api.example.com, *.example.com or example.com:8443. Requests go to local \
            servers too, but not to the metadata addresses of clouds.
            """)

    @Option(help: "The address to listen on; 127.0.0.1:8888, or a free port if that one is taken.")
    var listen: String?
    @Option(help: "The address of the admin listener; 127.0.0.1:9900, or a free port if that one is taken.")
    var admin: String?
    @Option(
        help: ArgumentHelp(
            "A host whose TLS is read; all hosts without this option. Can be repeated.", valueName: "glob"))
    var host: [String] = []
    @Option(help: ArgumentHelp("A host whose TLS passes unread. Can be repeated.", valueName: "glob"))
    var except: [String] = []
    @Option(
        help: ArgumentHelp(
            "A host that clients can reach, or several with commas; others are answered 403.", valueName: "host"))
    var only: [String] = []
    @Option(
        help: ArgumentHelp(
            "The proxy by which other hosts are reached; without this option, that of http_proxy, https_proxy, all_proxy and no_proxy.",
            valueName: "url"))
    var upstreamProxy: String?
    @Option(help: ArgumentHelp("The largest head of a response; 256KiB without this option.", valueName: "size"))
    var responseHead: String?
    @Option(
        help: ArgumentHelp(
            "An addon for mitmproxy, which sees and changes requests and responses. Needs Python 3.11.",
            valueName: "file"),
        completion: .file())
    var addon: String?
    @Option(help: ArgumentHelp("The memory for captured requests; the oldest go first.", valueName: "size"))
    var memory = "64MiB"
    @Option(
        help: ArgumentHelp(
            "A folder that keeps captured requests beyond memory and this run, up to 1GiB.", valueName: "folder"),
        completion: .directory)
    var disk: String?
    @Flag(help: "Print JSON, one object per line.")
    var json = false

    func run() throws {
        try LocalProxy.makeAuthority(
            for: "inspect",
            hint:
                "let your programs trust it with \(Program.name) ca install, or start them with \(Program.name) with -- COMMAND"
        )
        let listen = self.listen ?? FreePort.near(8888)
        var proxy = LocalProxy(command: "inspect", listen: listen, admin: admin ?? FreePort.near(9900))
        if !host.isEmpty { proxy.hosts = LocalProxy.hosts(host) }
        proxy.except = LocalProxy.hosts(except)
        proxy.only = LocalProxy.hosts(only)
        proxy.upstream = upstreamProxy
        proxy.responseHead = responseHead
        proxy.addon = addon
        proxy.capture = BuiltinConfiguration.Capture(
            memory: memory, disk: disk.map { URL(filePath: $0).path })
        let token = InspectorToken()
        proxy.token = token.secret
        let gateway = try GatewayRun.start(
            try proxy.configuration(), workers: nil, observes: true, for: "inspect")
        let status = gateway.status.now
        for listener in status.addresses {
            Terminal.error("\(Program.name): proxy on http://\(listener.address)")
            Terminal.error("\(Program.name): certificate and instructions on http://\(OwnHost.name)/ through the proxy")
        }
        let file = status.adminAddress.flatMap { token.announce(at: $0) }
        defer { file?.remove() }
        for listener in status.addresses {
            Terminal.error(
                "try: curl -x http://\(listener.address) --cacert "
                    + CommandText.quoted(
                        FilePath.joined(CertificateAuthority.usualFolder(), CertificateAuthority.certificateFile))
                    + " https://example.com/")
        }
        let (line, json) = (ExchangeLine(style: TerminalStyle(STDOUT_FILENO), showsHost: true), json)
        if !json, let heading = line.heading { Terminal.print(heading) }
        let printer = gateway.records.map { records in
            RequestPrinter(records) { report in
                guard !report.isOpeningOfReadTunnel else { return }
                Terminal.print(json ? report.json : line.text(report))
            } note: {
                Terminal.error($0)
            }
        }
        gateway.run()
        printer?.finish()
    }
}

/// Free ports of this machine.
enum FreePort {
    /// The loopback address with this port or one of the next nine, the first on which no program listens; else with port 0.
    static func near(_ port: UInt16) -> String {
        let near = (port..<port + 10).lazy.map { SocketAddress.loopback.with(port: $0) }
        return near.first { !WithCommand.isListening($0) }.map { "\($0)" } ?? "127.0.0.1:0"
    }
}
