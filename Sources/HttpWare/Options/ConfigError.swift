/// One mistake, or one doubtful thing, in a configuration: where it is, what was read, and what was expected.
///
/// ```
/// conf/httpware.yaml:14:12: error: bodyLimit.max: "10 mb" is not a byte count; write a number and a unit, such as 10MiB or 10MB
/// ```
public struct ConfigError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether it stops the start.
    public enum Severity: String, Sendable {
        /// The configuration cannot be used.
        case error
        /// It can be used, and probably does something else than was meant.
        case warning
    }

    /// Where the value, or the key, is written.
    public var location: SourceLocation
    /// Whether it stops the start.
    public var severity: Severity
    /// Where in the tree, such as `bodyLimit.max`; empty for a mistake that belongs to the file.
    public var keyPath: String
    /// Starts lower case, ends without a full stop, and never shows a secret.
    public var message: String

    /// Makes an error at its place.
    public init(at location: SourceLocation, severity: Severity = .error, keyPath: String, message: String) {
        self.location = location
        self.severity = severity
        self.keyPath = keyPath
        self.message = message
    }

    public var description: String {
        "\(location): \(severity.rawValue): \(keyPath.isEmpty ? "" : keyPath + ": ")\(message)".onOneLine
    }
}
