/// Whether wares may write: logs, archives, and the files of tokens. A run of tests closes the gate, so that only its own report is
/// written.
package enum OutputGate {
    @TaskLocal private static var closed = false

    /// Whether nothing is written.
    package static var isClosed: Bool { closed }

    /// Runs the body, and the tasks that it starts, while logs go nowhere, and archives and tokens stay in memory.
    package static func whileClosed<Result>(_ body: () throws -> Result) rethrows -> Result {
        try $closed.withValue(true, operation: body)
    }
}
