public import HttpWare

/// The gateway's own log.
public struct LogDefinition: Sendable, Hashable {
    public enum Level: String, OptionWord {
        case trace, debug, info, notice, warning, error, critical
    }

    public enum Format: String, OptionWord {
        case text, json
    }

    public internal(set) var level = Level.info
    public internal(set) var format = Format.text
    public internal(set) var output = LogOutput.stderr

    init() {}

    init(options: inout OptionsReader) {
        options.read("level", into: &level)
        options.read("format", into: &format)
        options.read("output", into: &output)
    }
}
