/// Collects mistakes while reading goes on, so that all of them appear at once.
public struct Diagnostics: Sendable {
    /// In the order in which they were found.
    public private(set) var all: [ConfigError] = []

    /// Nothing was found yet.
    public init() {}

    /// Whether anything keeps the configuration from being used; warnings do not.
    public var hasErrors: Bool { all.contains { $0.severity == .error } }

    /// By file, line and column, each once.
    public var sorted: [ConfigError] {
        var seen: Set<ConfigError> = []
        return all.filter { seen.insert($0).inserted }
            .enumerated()
            .sorted { ($0.element.location, $0.offset) < ($1.element.location, $1.offset) }
            .map(\.element)
    }

    /// Records a mistake.
    public mutating func error(at location: SourceLocation, _ keyPath: String, _ message: String) {
        all.append(ConfigError(at: location, keyPath: keyPath, message: message))
    }

    /// Records something doubtful.
    public mutating func warning(at location: SourceLocation, _ keyPath: String, _ message: String) {
        all.append(ConfigError(at: location, severity: .warning, keyPath: keyPath, message: message))
    }

    /// Takes over what another found.
    public mutating func append(_ others: [ConfigError]) {
        all += others
    }
}
