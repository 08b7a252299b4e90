/// A mistake, or a doubtful setting, in a configuration: its place, the text read, and the text expected.
///
/// ```
/// conf/httpware.yaml:14:12: error: bodyLimit.max: "10 mb" is not a byte count; write a number and a unit, such as 10MiB or 10MB
/// ```
public struct ConfigError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether it prevents the start.
    public enum Severity: String, Sendable {
        /// The configuration cannot be used.
        case error
        /// It can be used, but probably does not do what was intended.
        case warning
    }

    /// The place of the value, or of the key.
    public var location: SourceLocation
    /// Whether it prevents the start.
    public var severity: Severity
    /// The place in the tree, such as `bodyLimit.max`; empty for a mistake of the whole file. User information of URLs is masked.
    public var keyPath: String
    /// The text: starts in lower case, ends without a full stop, and never shows a secret: user information of URLs is masked.
    public var message: String

    /// Makes an error at a place.
    public init(at location: SourceLocation, severity: Severity = .error, keyPath: String, message: String) {
        self.location = location
        self.severity = severity
        self.keyPath = Redaction.text(keyPath)
        self.message = Redaction.text(message)
    }

    public var description: String {
        "\(location): \(severity.rawValue): \(keyPath.isEmpty ? "" : keyPath + ": ")\(message)".onOneLine
    }
}
