import Synchronization

/// The name of the running program, in its own texts and in the lines that it sends to a system log.
///
/// Fields of messages, such as `Via`, metrics and folders keep the name httpware in every program.
public enum ProgramName {
    /// The program sets the name when it starts; any thread reads it.
    private static let given = Mutex("httpware")

    /// The name: `httpware`, or that of a gateway with wares of its own.
    public static var text: String { given.withLock { $0 } }

    /// Sets the name, before the program does anything else.
    public static func use(_ name: String) { given.withLock { $0 = name } }
}
