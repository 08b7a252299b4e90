/// Collects mistakes while reading continues, so that all are reported at once.
public struct Diagnostics: Sendable {
    /// All mistakes, in the order in which they were found.
    public private(set) var all: [ConfigError] = []

    /// Makes an empty collection.
    public init() {}

    /// Whether an error makes the configuration unusable; warnings do not.
    public var hasErrors: Bool { all.contains { $0.severity == .error } }

    /// The mistakes by file, line and column, each once.
    public var sorted: [ConfigError] {
        var seen: Set<ConfigError> = []
        return all.filter { seen.insert($0).inserted }
            .enumerated()
            .sorted { ($0.element.location, $0.offset) < ($1.element.location, $1.offset) }
            .map(\.element)
    }

    /// Records an error.
    public mutating func error(at location: SourceLocation, _ keyPath: String, _ message: String) {
        all.append(ConfigError(at: location, keyPath: keyPath, message: message))
    }

    /// Records a warning.
    public mutating func warning(at location: SourceLocation, _ keyPath: String, _ message: String) {
        all.append(ConfigError(at: location, severity: .warning, keyPath: keyPath, message: message))
    }

    /// Adds the mistakes of another collection.
    public mutating func append(_ others: [ConfigError]) {
        all += others
    }
}
