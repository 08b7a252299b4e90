public import HttpWare

/// The gateway's own log.
public struct LogDefinition: Sendable, Hashable {
    /// How a line looks.
    public enum Format: String, OptionWord {
        case text, json
    }

    /// The least that is written.
    public internal(set) var level = WareLog.Level.info
    /// How a line looks.
    public internal(set) var format = Format.text
    /// Where lines go.
    public internal(set) var output = LogOutput.stderr

    init() {}

    init(options: inout OptionsReader) {
        options.read("level", into: &level)
        options.read("format", into: &format)
        options.read("output", into: &output)
        if !options.isDescribing, let problem = output.problem { options.fail(at: "output", problem) }
    }
}
