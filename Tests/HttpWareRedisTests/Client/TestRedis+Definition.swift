import HttpWare
import HttpWareRedis
import HttpWareTesting

extension TestRedis {
    /// Its definition in a configuration.
    var definition: RedisDefinition {
        // On a busy machine an answer may take longer than usual.
        get throws {
            RedisDefinition(
                url: try RedisUrl(optionText: url), password: password.map { Secret($0) }, timeout: .seconds(1))
        }
    }
}
