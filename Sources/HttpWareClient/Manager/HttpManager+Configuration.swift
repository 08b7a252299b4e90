import FoundationEssentials
import GatewayConfig

/// What is wrong with a configuration file: every mistake, with its place.
public struct ConfigurationMistakes: Error, Sendable, CustomStringConvertible {
    public let errors: [ConfigError]

    /// One a line.
    public var description: String { errors.map { "\($0)" }.joined(separator: "\n") }
}

extension HttpManager {
    /// A manager whose wares are a chain of a configuration file: the file that a gateway reads, or one of chains alone. Its
    /// `credentials` come with it; listeners, services and routes are not looked for.
    ///
    /// ```swift
    /// let manager = try HttpManager(configuration: "conf/client.yaml", chain: "app", service: api)
    /// ```
    ///
    /// `${VAR}` finds the variables of `environment`, the process's own unless others are given.
    ///
    /// Throws `ConfigurationMistakes` with every mistake in the file, or when it has no such chain. Reads files: not on a loop.
    public convenience init(
        configuration path: String, chain name: String, service: ServiceDefinition, client: any HttpClient = .libevent,
        wares: [any ConfigurableWare.Type] = BuiltinWares.all,
        environment: [String: String]? = nil, records: RecordRing? = nil,
        loops: ClientLoops = .shared
    ) throws {
        let reader = ConfigurationReader(
            wares: wares, environment: environment ?? ProcessInfo.processInfo.environment, isForClient: true)
        let result = reader.read(path: path)
        guard let configuration = result.configuration else {
            throw ConfigurationMistakes(errors: result.errors.filter { $0.severity == .error })
        }
        guard let chain = configuration.chains[name] else {
            let known = configuration.chains.keys.sorted().joined(separator: ", ")
            throw ConfigurationMistakes(errors: [
                ConfigError(
                    at: SourceLocation(file: path, line: 1, column: 1), keyPath: "chains",
                    message: "there is no chain \(name.debugDescription); there are: \(known.isEmpty ? "none" : known)")
            ])
        }
        try self.init(service: service, client: client, chain: chain, records: records, loops: loops)
    }
}
