public import HttpWare

/// A placeholder that a program got instead of a token.
public struct IssuedPlaceholder: Sendable {
    public let placeholder: TokenPlaceholder
    /// The identifier of the program's run in audit lines.
    public let run: String
}
