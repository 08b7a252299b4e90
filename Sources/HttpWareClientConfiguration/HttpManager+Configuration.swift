import FoundationEssentials
import GatewayConfig
public import HttpCaching
public import HttpWare
public import HttpWareClient
public import GatewayWares

/// The errors in a configuration file, each with its place.
public struct ConfigurationMistakes: Error, Sendable, CustomStringConvertible {
    public let errors: [ConfigError]

    /// The errors, one on each line.
    public var description: String { errors.map { "\($0)" }.joined(separator: "\n") }
}

extension HttpManager {
    /// Makes a manager whose wares are a chain of a configuration file, which may be the file of a gateway or contain only
    /// chains. Its `credentials` and `stores` are used; listeners, services and routes are ignored.
    ///
    /// ```swift
    /// let manager = try HttpManager(configuration: "conf/client.yaml", chain: "app", service: api)
    /// ```
    ///
    /// `${VAR}` is a variable of `environment`, by default the process's own. `stores` are the kinds of stores that the file can
    /// name besides `memory`: `DiskKind.self` of the module `DiskCaching`, `RedisKind.self` of `HttpWareRedis`.
    ///
    /// Throws `ConfigurationMistakes` with every error in the file, or if the file has no such chain. It reads files, so it must
    /// not be called on a loop.
    public convenience init(
        configuration path: String, chain name: String, service: ServiceDefinition,
        client: any HttpClient = .libevent,
        wares: [any ConfigurableWare.Type] = BuiltinWares.all, stores: [any StoreKind.Type] = [],
        environment: [String: String]? = nil, records: RecordRing? = nil,
        loops: ClientLoops = .shared
    ) throws {
        let file = try ClientFile(path, wares, stores, environment)
        self.init(
            service: service, client: client, chain: try file.chain(name), records: records, loops: loops)
    }

    /// Makes a manager for a service in a configuration file, with its base URL, fields, timeouts, pool and TLS. The chain is
    /// the one named here, or else the service's own.
    ///
    /// ```swift
    /// let api = try HttpManager(configuration: "conf/httpware.yaml", service: "api")
    /// ```
    ///
    /// `adjust` may change properties that files do not contain, such as coders and environments.
    ///
    /// Throws `ConfigurationMistakes` as above, and if there is no such service. It also throws if the service uses features
    /// that only a gateway has: several endpoints, or another `host`.
    public convenience init(
        configuration path: String, service name: String, chain: String? = nil, client: any HttpClient = .libevent,
        wares: [any ConfigurableWare.Type] = BuiltinWares.all, stores: [any StoreKind.Type] = [],
        environment: [String: String]? = nil, records: RecordRing? = nil, loops: ClientLoops = .shared,
        adjust: (inout ServiceDefinition) -> Void = { _ in }
    ) throws {
        let file = try ClientFile(path, wares, stores, environment)
        let written = try file.service(name)
        var service = try ServiceDefinition(written)
        adjust(&service)
        self.init(
            service: service, client: client, chain: try (chain ?? written.chain).map(file.chain) ?? .empty,
            records: records, loops: loops)
    }
}

/// A configuration file, as read for a client.
private struct ClientFile {
    private let path: String
    private let configuration: GatewayConfiguration

    init(
        _ path: String, _ wares: [any ConfigurableWare.Type], _ stores: [any StoreKind.Type],
        _ environment: [String: String]?
    ) throws {
        let reader = ConfigurationReader(
            wares: wares, stores: stores, environment: environment ?? ProcessInfo.processInfo.environment,
            isForClient: true)
        let result = reader.read(path: path)
        guard let configuration = result.configuration else {
            throw ConfigurationMistakes(errors: result.errors.filter { $0.severity == .error })
        }
        self.path = path
        self.configuration = configuration
    }

    func chain(_ name: String) throws -> WareChain {
        guard let chain = configuration.chains[name] else {
            throw missing("chain", name, configuration.chains.keys.sorted())
        }
        return chain
    }

    func service(_ name: String) throws -> ConfiguredService {
        guard let service = configuration.services.first(where: { $0.name == name }) else {
            throw missing("service", name, configuration.services.map(\.name).sorted())
        }
        return service
    }

    private func missing(_ noun: String, _ name: String, _ known: [String]) -> ConfigurationMistakes {
        let list = known.isEmpty ? "none" : known.joined(separator: ", ")
        return ConfigurationMistakes(errors: [
            ConfigError(
                at: SourceLocation(file: path, line: 1, column: 1), keyPath: "\(noun)s",
                message: "there is no \(noun) \(name.debugDescription); there are: \(list)")
        ])
    }
}
