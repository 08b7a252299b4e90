public import GatewayConfig
public import HttpWare
import Synchronization
import Wares

/// The gateway's own log: its actions and errors. Requests are logged by the `accessLog` ware.
///
/// Lines are queued from any thread and written by the log writer's thread, so no loop waits for a disk.
public final class GatewayLog: Sendable {
    private struct State {
        var definition: LogDefinition
        var sink: LogSink
        // The lines of the current second.
        var second: Int64 = 0
        var lines = 0
        var dropped = 0
    }

    /// Guards the definition, which a reload changes, and the count of lines.
    private let state: Mutex<State>
    /// The maximum number of lines in one second; further ones are only counted. An error in every request must not
    /// fill a disk.
    private static let linesPerSecond = 100

    /// Starts to log, and takes over the lines of wares.
    public init(_ definition: LogDefinition) {
        state = Mutex(State(definition: definition, sink: GatewayLog.sink(definition)))
        lead(definition)
    }

    /// Uses another definition from now on. Safe from any thread.
    public func use(_ definition: LogDefinition) {
        let sink = GatewayLog.sink(definition)
        state.withLock { state in
            state.definition = definition
            state.sink = sink
        }
        lead(definition)
    }

    private func lead(_ definition: LogDefinition) {
        LogTrouble.setOwnOutput(definition.output)
        WareLog.shared.use(definition.level) { [weak self] level, message in self?.write(level, message) }
    }

    private static func sink(_ definition: LogDefinition) -> LogSink {
        LogWriter.shared.sink(for: definition.output) { dropped in
            line(.warning, "\(dropped) lines were dropped: the output is too slow", definition.format)
        }
    }

    /// Writes a line if its level is enabled. Safe from any thread. A line with `isCertain` does not count in the
    /// limit, because only operators cause it.
    public func write(_ level: WareLog.Level, isCertain: Bool = false, _ message: @autoclosure () -> String) {
        let asked: (dropped: Int, format: LogDefinition.Format, sink: LogSink)? = state.withLock { state in
            guard level >= state.definition.level else { return nil }
            let second = SystemLoopClock().wallNow().seconds
            if state.second != second {
                defer { (state.second, state.lines, state.dropped) = (second, 1, 0) }
                return (state.dropped, state.definition.format, state.sink)
            }
            if isCertain { return (0, state.definition.format, state.sink) }
            state.lines += 1
            if state.lines > GatewayLog.linesPerSecond {
                state.dropped += 1
                return nil
            }
            return (0, state.definition.format, state.sink)
        }
        guard let (dropped, format, sink) = asked else { return }
        if dropped > 0 { sink.append(text: GatewayLog.line(.warning, "\(dropped) lines were left out", format)) }
        sink.append(text: GatewayLog.line(level, message(), format))
    }

    /// The maximum number of errors that are written for one configuration.
    private static let mostErrors = 100

    /// Writes the errors and warnings of a configuration.
    func write(_ errors: [ConfigError]) {
        for error in errors.prefix(GatewayLog.mostErrors) {
            write(error.severity == .error ? .error : .warning, isCertain: true, error.description)
        }
        let left = errors.count - GatewayLog.mostErrors
        if left > 0 { write(.error, isCertain: true, "\(left) more; \(ProgramName.text) check shows all") }
    }

    /// Waits until everything is written, before the program ends.
    public func flush() { _ = LogWriter.shared.flush() }

    private static func line(_ level: WareLog.Level, _ message: String, _ format: LogDefinition.Format) -> String {
        let stamp = stamp(SystemLoopClock().wallNow())
        if format == .json {
            let members: [(String, Json)] = [
                ("time", .text(stamp)), ("level", .text(level.rawValue)), ("message", .text(message)),
            ]
            return Json.object(members).text
        }
        // Always one line, whatever a peer sent.
        let printable = String(message.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7f ? " " : Character($0) })
        return "\(stamp) \(level.rawValue) \(printable)"
    }

    /// A time in RFC 3339, in UTC with milliseconds.
    static func stamp(_ time: WallTime) -> String { time.rfc3339(decimals: 3) }
}
