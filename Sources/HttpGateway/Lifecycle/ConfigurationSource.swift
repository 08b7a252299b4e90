public import GatewayConfig

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

    /// Reads a file for the first time, and remembers its origin.
    public static func read(
        _ path: String, with reader: ConfigurationReader
    ) -> (source: ConfigurationSource, result: ConfigurationReader.Result) {
        let look = FileLook()
        let result = reader.read(path: path)
        let source = ConfigurationSource(
            reader: reader, path: path, paths: result.paths, patterns: result.patterns, look: look)
        return (source, result)
    }

    /// Reads the files again.
    func read(keeping former: GatewayConfiguration) -> ConfigurationReader.Result {
        reader.read(path: path, keeping: former)
    }
}
