public import GatewayConfig
import HttpWare

/// The origin of a gateway's configuration, for reading it again.
public struct ConfigurationSource: Sendable {
    /// The reader of the configuration.
    let reader: ConfigurationReader
    /// The file.
    let path: String
    /// The files that were read the first time, and the patterns of `include`.
    let paths: [String]
    let patterns: [String]
    /// The state of the files, taken before they were read.
    let look: FileLook

    /// Reads a file for the first time, and remembers its origin. If it looks for services, their sources are asked, too, so that a gateway that
    /// starts again serves at once what the former one served.
    public static func read(
        _ path: String, with reader: ConfigurationReader
    ) -> (source: ConfigurationSource, result: ConfigurationReader.Result) {
        let look = FileLook()
        let result = reader.read(path: path).withFoundServices(by: reader)
        let source = ConfigurationSource(
            reader: reader, path: path, paths: result.paths, patterns: result.patterns, look: look)
        return (source, result)
    }

    /// Reads the files again, and keeps the found services.
    func read(keeping former: GatewayConfiguration) -> ConfigurationReader.Result {
        reader.read(path: path, keeping: former, finding: former.found.instances)
    }
}

extension ConfigurationReader.Result {
    /// The result with the services that are found now, if the configuration looks for any. A source that cannot be asked is a warning.
    public func withFoundServices(by reader: ConfigurationReader) -> ConfigurationReader.Result {
        guard let configuration, let discover = configuration.discover else { return self }
        do throws(SystemError) {
            let look = try FirstLook(discover)
            var found = reader.read(again: configuration, finding: look.instances)
            found.paths = paths
            found.patterns = patterns
            found.errors =
                errors
                + look.failures.map { failure in
                    ConfigError(
                        at: discover.location, severity: .warning, keyPath: "discover",
                        message: "\(failure); its services are added when it can be asked")
                } + (found.configuration == nil ? found.errors : [])
            return found
        } catch {
            var result = self
            result.errors.append(
                ConfigError(at: discover.location, severity: .warning, keyPath: "discover", message: "\(error)"))
            return result
        }
    }
}
