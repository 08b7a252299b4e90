/// Whether options may look at this machine while a configuration is read: its files, and the variables of its environment. All code that
/// reads options asks here before it opens a file that they name, so that a text of a stranger can be checked.
public enum FileGate {
    @TaskLocal private static var isClosed = false

    /// The reason why nothing may be looked at, as the text of an error; `nil` if options may.
    public static var refusal: String? { isClosed ? "only the text itself is read here" : nil }

    /// Runs the body while options must not look at this machine.
    package static func whileClosed<Result>(_ body: () throws -> Result) rethrows -> Result {
        try $isClosed.withValue(true, operation: body)
    }
}
