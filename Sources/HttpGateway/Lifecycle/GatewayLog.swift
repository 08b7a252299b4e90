import Foundation
public import GatewayConfig
import HttpWare
import Synchronization

/// The gateway's own log: what it does, and what goes wrong. Requests are logged by the `accessLog` ware.
public final class GatewayLog: Sendable {
    private let definition: LogDefinition
    private let descriptor: Int32
    /// Guards the count of lines in the present second.
    private let budget = Mutex<(second: Int64, lines: Int, dropped: Int)>((0, 0, 0))
    /// More lines in one second are counted, not written: a fault must not fill a disk.
    private static let linesPerSecond = 100

    public init(_ definition: LogDefinition) {
        self.definition = definition
        switch definition.output {
        case .stdout: descriptor = 1
        case .file(let path):
            let opened = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o640)
            descriptor = opened >= 0 ? opened : 2
        default: descriptor = 2
        }
    }

    /// Writes a line if its level is asked for. From any thread.
    public func write(_ level: LogDefinition.Level, _ message: @autoclosure () -> String) {
        guard level.rank >= definition.level.rank else { return }
        let time = SystemLoopClock().wallNow()
        let dropped: Int? = budget.withLock { budget in
            if budget.second != time.seconds {
                let dropped = budget.dropped
                budget = (time.seconds, 1, 0)
                return dropped
            }
            budget.lines += 1
            if budget.lines > GatewayLog.linesPerSecond { budget.dropped += 1 }
            return budget.lines > GatewayLog.linesPerSecond ? nil : 0
        }
        guard let dropped else { return }
        if dropped > 0 { put(.warning, "\(dropped) lines were left out", time) }
        put(level, message(), time)
    }

    private func put(_ level: LogDefinition.Level, _ message: String, _ time: WallTime) {
        let stamp = GatewayLog.stamp(time)
        var line =
            definition.format == .json
            ? "{\"time\":\"\(stamp)\",\"level\":\"\(level.rawValue)\",\"message\":\(message.jsonString)}\n"
            : "\(stamp) \(level.rawValue) \(message.replacingOccurrences(of: "\n", with: " "))\n"
        line.withUTF8 { bytes in _ = Glibc.write(descriptor, bytes.baseAddress, bytes.count) }
    }

    /// RFC 3339 in UTC with milliseconds.
    static func stamp(_ time: WallTime) -> String {
        let days = Int64((Double(time.seconds) / 86400).rounded(.down))
        let inDay = Int(time.seconds - days * 86400)
        let (year, month, day) = HttpDate.civil(days)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let milliseconds = Int(time.nanoseconds) / 1_000_000
        let fraction =
            milliseconds < 10 ? "00\(milliseconds)" : milliseconds < 100 ? "0\(milliseconds)" : "\(milliseconds)"
        return
            "\(year)-\(two(month))-\(two(day))T\(two(inDay / 3600)):\(two(inDay / 60 % 60)):\(two(inDay % 60)).\(fraction)Z"
    }
}

extension LogDefinition.Level {
    /// The place in the order of urgency.
    var rank: Int { LogDefinition.Level.allCases.firstIndex(of: self) ?? 0 }
}
