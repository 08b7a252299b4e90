public import HttpWare

/// A placeholder that was given to a program in place of a token.
public struct IssuedPlaceholder: Sendable {
    public let placeholder: TokenPlaceholder
    /// The run of the program, as audit lines name it.
    public let run: String
}
