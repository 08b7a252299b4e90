public import HttpWare

/// The gateway's own log.
public struct LogDefinition: Sendable, Hashable {
    /// The form of a line.
    public enum Format: String, OptionWord {
        case text, json
    }

    /// The lowest level that is written.
    public internal(set) var level = WareLog.Level.info
    /// The form of a line.
    public internal(set) var format = Format.text
    /// The output for lines.
    public internal(set) var output = LogOutput.stderr

    /// The defaults: texts from `info` on, on standard error.
    public init() {}

    init(options: inout OptionsReader) {
        options.read("level", into: &level, doc: "the least important lines that are written")
        options.read("format", into: &format, doc: "text, or json with an object a line")
        options.read("output", into: &output, doc: "stderr, stdout or a file")
        if !options.isDescribing, let problem = output.problem { options.fail(at: "output", problem) }
    }
}
