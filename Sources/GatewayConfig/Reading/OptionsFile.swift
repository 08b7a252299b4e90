public import HttpWare

/// A YAML file with options of any form: not a configuration, but read in the same way, with the place of each value.
public struct OptionsFile: Sendable {
    /// The content, with `${…}` replaced; `nil` if the file cannot be read, or is not YAML.
    public let root: ConfigNode?
    /// The mistakes found while it was read.
    public let errors: [ConfigError]
    /// Whether the file itself cannot be read, whatever its content.
    public let isUnreadable: Bool
    /// Whether there is no such file.
    public let isAbsent: Bool

    /// Reads a file; `-` is standard input. `environment` has the variables for `${VAR}`.
    public init(path: String, environment: [String: String], files: ConfigurationFiles = .system) {
        let file = path == "-" ? "stdin" : path
        var diagnostics = Diagnostics()
        let bytes: [UInt8]
        do {
            bytes = try files.read(path, YamlReader.Limit.bytes)
        } catch {
            diagnostics.error(at: SourceLocation(file: file, line: 0, column: 0), "", error.reason)
            root = nil
            errors = diagnostics.all
            isUnreadable = error.isOfSystem
            isAbsent = error.isAbsent
            return
        }
        let (node, found) = YamlReader.read(bytes, file: file)
        diagnostics.append(found.all)
        var interpolation = Interpolation(
            environment: environment, files: files, directory: path == "-" ? "" : FilePath.directory(of: path))
        let read = node.map { interpolation.apply(to: $0) }
        diagnostics.append(interpolation.diagnostics.all)
        root = read
        errors = diagnostics.sorted
        isUnreadable = false
        isAbsent = false
    }
}
