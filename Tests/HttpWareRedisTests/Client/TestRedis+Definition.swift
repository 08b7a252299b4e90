import HttpWare
import HttpWareRedis
import HttpWareTesting

extension TestRedis {
    /// Its definition in a configuration.
    var definition: RedisDefinition {
        get throws { RedisDefinition(url: try RedisUrl(optionText: url), password: password.map { Secret($0) }) }
    }
}
