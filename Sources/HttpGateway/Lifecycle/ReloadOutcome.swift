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
