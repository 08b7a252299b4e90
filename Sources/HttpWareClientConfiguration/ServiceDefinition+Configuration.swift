import GatewayConfig
import HttpWare
import HttpWareClient

extension ServiceDefinition {
    /// Takes over a service from a configuration file. A feature that clients do not support is reported as an error
    /// with its place.
    init(_ written: ConfiguredService) throws(ConfigurationMistakes) {
        func mistake(_ key: String, _ message: String) -> ConfigurationMistakes {
            ConfigurationMistakes(errors: [
                ConfigError(at: written.location, keyPath: "services.\(written.name).\(key)", message: message)
            ])
        }
        guard let endpoint = written.endpoints.first, written.endpoints.count == 1 else {
            throw mistake(
                "endpoints", "a client uses one origin server; there are \(written.endpoints.count)")
        }
        if case .fixed(let host) = written.host {
            throw mistake("host", "\(host) is only for gateways; a client sends the host of its base URL")
        }
        do throws(HttpError) {
            self.init(baseURL: try BaseUrl(endpoint.url))
        } catch {
            throw mistake("baseUrl", error.reason)
        }
        for entry in written.headers { headers.append("\(entry.key)", entry.value.text) }
        timeouts.connect = written.timeouts.connect
        timeouts.response = written.timeouts.response
        timeouts.idle = written.timeouts.idle
        timeouts.total = written.timeouts.total
        pool.maxIdle = written.pool.maxIdle
        if let most = written.pool.maxPerEndpoint { pool.maxPerEndpoint = most }
        pool.idleTimeout = written.timeouts.idle
        speaks =
            switch written.wireProtocol {
            case .auto: .auto
            case .h1: .h1
            case .h2: .h2
            }
        tls = written.tls?.context
        serverName = written.tls?.serverName
    }
}
