import ArgumentParser
import FoundationEssentials
import GatewayConfig
import HttpGateway
import HttpWare

/// Finds the admin listener of a running gateway by `--admin`, or else by `admin` of a configuration. Without either,
/// it is the address at which `httpware inspect` opens it.
struct AdminOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            The admin listener, such as 127.0.0.1:9900 or unix:/run/admin.sock. Default: as in the configuration; without a \
            configuration 127.0.0.1:9900, where \(Program.name) inspect opens it.
            """,
            valueName: "address"))
    var admin: String?
    @Option(
        help: ArgumentHelp(
            """
            The admin listener's token. Default: HTTPWARE_ADMIN_TOKEN, else as in the configuration, else the one that \
            \(Program.name) inspect or the gateway of this user made.
            """))
    var token: String?
    @OptionGroup var file: ConfigurationOption

    /// The client of the chosen listener. If no listener can be chosen, the program ends.
    func client() throws -> AdminClient {
        let environment = ProcessInfo.processInfo.environment["HTTPWARE_ADMIN_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
        let shown = (token ?? environment).map { Secret($0) }
        if let admin {
            let text = admin.hasPrefix("http://") ? String(admin.dropFirst(7).prefix { $0 != "/" }) : admin
            let named = text.hasPrefix("localhost:") ? "127.0.0.1" + text.dropFirst(9) : text
            guard let address = SocketAddress(named, defaultPort: 9900) else {
                throw ValidationError("\(admin) is not an address; write 127.0.0.1:9900 or unix:/run/admin.sock")
            }
            return AdminOption.client(at: address, shown)
        }
        guard file.path != nil || file.isThere else {
            let address = SocketAddress.loopback.with(port: 9900)
            return AdminOption.client(at: address, shown)
        }
        let result = try file.read()
        guard let configuration = result.configuration else {
            for error in result.errors where error.severity == .error { Terminal.error(error.description) }
            throw ExitCode(1)
        }
        guard let definition = configuration.admin else {
            Terminal.error("the configuration has no admin listener; add admin: {}, or name a listener with --admin")
            throw ExitCode(1)
        }
        guard definition.bind.port != 0 else {
            Terminal.error("the admin listener has port 0, so its real port is unknown; name it with --admin")
            throw ExitCode(1)
        }
        var address = definition.bind
        if let port = address.port, address.address?.isUnspecified == true {
            address = .ip(
                address.address?.isIPv4 == true ? IPAddress(ipv4: 0x7f00_0001) : IPAddress(ipv6: 0, 1), port: port)
        }
        return AdminOption.client(at: address, shown ?? definition.token)
    }

    /// The client of the listener at an address, with the token that is known, or the first of the kept ones that it accepts. Tokens
    /// that a gateway keeps for its user are sent to this machine only.
    private static func client(at address: SocketAddress, _ token: Secret?) -> AdminClient {
        if let token = token ?? InspectorToken.kept(for: address) { return AdminClient(address: address, token: token) }
        guard case .ip = address, address.isLoopback else { return AdminClient(address: address, token: nil) }
        let clients = AdminTokenFile.ofUser.tokens().map { AdminClient(address: address, token: $0) }
        guard clients.count > 1 else { return clients.first ?? AdminClient(address: address, token: nil) }
        return clients.first { (try? $0.answer(.get, "/v1/maintenance", within: .seconds(3))) != nil } ?? clients[0]
    }
}
