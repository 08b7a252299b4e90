import ArgumentParser
import GatewayConfig
import HttpWare

/// `--admin ADDR`, and how a running gateway is found without it.
struct AdminOption: ParsableArguments {
    @Option(
        help: "The admin listener, such as 127.0.0.1:9900 or unix:/run/admin.sock. Default: as in the configuration.")
    var admin: String?
    @OptionGroup var file: ConfigurationOption

    /// Where the admin listener is, and the token it wants; ends the program when that cannot be known.
    func target() throws -> (address: SocketAddress, token: Secret?) {
        if let admin {
            let text = admin.hasPrefix("http://") ? String(admin.dropFirst(7).prefix { $0 != "/" }) : admin
            let named = text.hasPrefix("localhost:") ? "127.0.0.1" + text.dropFirst(9) : text
            guard let address = SocketAddress(named, defaultPort: 9900) else {
                throw ValidationError("\(admin) is not an address; write 127.0.0.1:9900 or unix:/run/admin.sock")
            }
            return (address, nil)
        }
        let result = try file.read()
        guard let configuration = result.configuration else {
            for error in result.errors where error.severity == .error { Terminal.error(error.description) }
            throw ExitCode(1)
        }
        guard let definition = configuration.admin else {
            Terminal.error("the configuration has no admin listener; write admin: {}, or name one with --admin")
            throw ExitCode(1)
        }
        var address = definition.bind
        if let port = address.port, address.address?.isUnspecified == true {
            address = .ip(
                address.address?.isIPv4 == true ? IPAddress(ipv4: 0x7f00_0001) : IPAddress(ipv6: 0, 1), port: port)
        }
        return (address, definition.token)
    }
}
