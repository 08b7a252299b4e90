public import HttpWare

/// The result of a reload.
public enum ReloadOutcome: Sendable {
    /// The new configuration runs, with that number of changes and these warnings.
    case done(changes: Int, warnings: [ConfigError])
    /// The files have errors; the previous configuration stays in force.
    case refused([ConfigError])
    /// Another error, such as a port in use; the previous configuration stays in force.
    case failed(String)

    /// Whether the requested configuration runs.
    public var isSuccess: Bool {
        if case .done = self { true } else { false }
    }
}
