import ArgumentParser
import Foundation
import GatewayConfig
import HttpWare

/// How a command finds the admin listener of a running gateway: `--admin`, else `admin` of a configuration.
struct AdminOption: ParsableArguments {
    @OptionGroup var file: ConfigurationOption
    @Option(
        help: ArgumentHelp(
            "The admin listener: host:port or unix:/path. Default: admin.bind of the configuration, else 127.0.0.1:9900.",
            valueName: "address"))
    var admin: String?
    @Option(help: "What it wants to be shown. Default: HTTPWARE_ADMIN_TOKEN, else admin.token of the configuration.")
    var token: String?

    /// The listener that is meant; ends the program when that cannot be told.
    func client() throws -> AdminClient {
        let environment = ProcessInfo.processInfo.environment["HTTPWARE_ADMIN_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
        if let admin {
            let named = admin.hasPrefix("localhost:") ? "127.0.0.1" + admin.dropFirst("localhost".count) : admin
            guard let address = SocketAddress(named, defaultPort: 9900) else {
                throw ValidationError("--admin \(admin) is no address; write such as 127.0.0.1:9900 or unix:/run/admin")
            }
            return AdminClient(address: address, token: token ?? environment)
        }
        guard file.path != nil || file.isThere else {
            return AdminClient(address: SocketAddress.loopback.with(port: 9900), token: token ?? environment)
        }
        let result = try file.read()
        guard let configuration = result.configuration else {
            for error in result.errors { Terminal.error(error.description) }
            throw ExitCode(1)
        }
        guard let definition = configuration.admin else {
            Terminal.error("the configuration has no admin listener; write admin: { bind: \"127.0.0.1:9900\" }")
            throw ExitCode(1)
        }
        guard definition.bind.port != 0 else {
            Terminal.error("the admin listener is bound to any free port; name it with --admin")
            throw ExitCode(1)
        }
        return AdminClient(address: definition.bind, token: token ?? environment ?? definition.token?.revealed)
    }
}
