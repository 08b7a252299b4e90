public import GatewayConfig
public import HttpWare

/// What came of a reload.
public enum ReloadOutcome: Sendable {
    /// The new configuration runs: so many things changed, and this is doubtful.
    case done(changes: Int, warnings: [ConfigError])
    /// The files are wrong; what ran before runs on.
    case refused([ConfigError])
    /// Something else stood in the way, such as a port that is taken; what ran before runs on.
    case failed(String)

    /// Whether the configuration that was asked for runs.
    public var isSuccess: Bool {
        if case .done = self { true } else { false }
    }
}

/// Where a gateway's configuration comes from, to be read again.
public struct ConfigurationSource: Sendable {
    /// Reads it.
    public let reader: ConfigurationReader
    /// The file.
    public let path: String
    /// Every file that was read with it, and the patterns of `include`.
    public private(set) var paths: [String]
    public private(set) var patterns: [String]

    /// The source of what was read from a file.
    public init(reader: ConfigurationReader, path: String, result: ConfigurationReader.Result) {
        self.reader = reader
        self.path = path
        paths = result.paths
        patterns = result.patterns
    }

    /// Reads the files again.
    func read(keeping former: GatewayConfiguration) -> ConfigurationReader.Result {
        reader.read(path: path, keeping: former)
    }

    /// Notes what was read just now.
    mutating func note(_ result: ConfigurationReader.Result) {
        paths = result.paths
        patterns = result.patterns
    }
}
