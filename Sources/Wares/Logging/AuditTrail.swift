public import HttpWare
import Synchronization

/// Refused hosts, questions with their answers, and uses of credentials: the newest lines of this process, for `audit`. Safe to use from any thread.
///
/// Lines never contain credentials.
public final class AuditTrail: Sendable {
    /// The trail of the process.
    public static let shared = AuditTrail()

    /// One line.
    public struct Line: Sendable {
        /// Its number, from 1.
        public let number: Int
        public let time: WallTime
        fileprivate let kind: Kind
        fileprivate let members: [(String, Json)]

        /// The line as JSON: its time, its kind, and its members.
        public var json: Json {
            .object([("time", .text(time.rfc3339)), ("kind", .text(kind.rawValue))] + members)
        }
    }

    /// The subject of a line.
    package enum Kind: String {
        /// A host that a rule refused.
        case host
        /// A question to a person.
        case question
        /// A credential that was used, or refused.
        case credential
    }

    private struct State {
        var lines: [Line] = []
        /// The place of the oldest line.
        var start = 0
        var last = 0
    }

    private let state = Mutex(State())
    /// The most lines that are kept, and the most bytes of a text in one.
    package static let most = 10_000
    package static let longest = 1 << 10

    init() {}

    /// Adds a line, and writes it to the sink of a ware if it has one. In the trail, long texts are cut.
    package func add(_ kind: Kind, _ members: [(String, Json)], at time: WallTime, to sink: LogSink? = nil) {
        sink?.append(text: Json.object([("time", .text(time.rfc3339))] + members).text)
        let members = members.map { ($0.0, $0.1.cut(to: Self.longest)) }
        state.withLock { state in
            state.last += 1
            let line = Line(number: state.last, time: time, kind: kind, members: members)
            if state.lines.count < Self.most {
                state.lines.append(line)
            } else {
                state.lines[state.start] = line
                state.start = (state.start + 1) % Self.most
            }
        }
    }

    /// The number of the last line; 0 without one.
    public var last: Int { state.withLock { $0.last } }

    /// The lines after a number, the oldest first.
    public func lines(after number: Int) -> [Line] {
        state.withLock { state in
            let ordered = state.lines[state.start...] + state.lines[..<state.start]
            return ordered.filter { $0.number > number }
        }
    }

    /// The sink of a ware's option `audit`.
    package static func readSink(_ options: inout OptionsReader) -> LogSink? {
        var output = LogOutput.stderr
        options.read("output", into: &output, doc: "place where lines are written: stdout, stderr, syslog or file:PATH")
        if options.isDescribing { return nil }
        if let problem = output.problem { options.fail(at: "output", problem) }
        return LogWriter.shared.sink(for: output) { dropped in
            Json.object([("dropped", .number(dropped))]).text
        }
    }
}

extension Json {
    /// A text of at most this many bytes, with a mark in place of the rest; any other value as it is.
    fileprivate func cut(to most: Int) -> Json {
        guard case .text(let text) = self, text.utf8.count > most else { return self }
        return .text(String(decoding: text.utf8.prefix(most), as: UTF8.self) + Redaction.mark)
    }
}
