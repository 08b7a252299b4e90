import ArgumentParser
import Glibc
import HttpWare

/// `httpware audit`: refused hosts, questions with their answers, and uses of credentials.
struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show which hosts were refused, which questions answered, and which credentials used.",
        discussion: """
            The running gateway keeps its last 10,000 lines. To keep more, give the wares ask and tokenInject the option audit, which writes \
            a file.
            """)

    @Flag(name: .shortAndLong, help: "Continue with new lines until the command is ended.")
    var follow = false
    @Option(help: "Only lines of the last time, such as 10m.")
    var since: String?
    @OptionGroup var view: AdminView

    private struct Answer: Decodable {
        let last: Int
        let lines: [Line]
    }

    private struct Line: Decodable {
        let time: String
        let kind: String
        let action: String
        var who: String?
        var run: String?
        var credential: String?
        var method: String?
        var host: String?
        var path: String?
        var url: String?
        var hash: String?
        var rule: String?
        var by: String?
        var reason: String?
        var status: Int?
        var waitedMs: Int?

        /// The line for people.
        var row: String {
            let what = [method, url ?? path.map { (host ?? "") + $0 } ?? host].compactMap { $0 }.joined(separator: " ")
            let subject = credential.map { "\(kind) \($0)" } ?? kind
            var text = "\(time) \(subject) \(action): \(what)"
            if let who = who ?? run { text += ", from \(who)" }
            if let by { text += ", by \(by)" }
            if let waitedMs { text += ", after \(waitedMs) ms" }
            if let reason { text += " (\(reason))" }
            return text
        }
    }

    /// Microseconds between two looks at new lines.
    private static let pause: UInt32 = 500_000

    func run() throws {
        var past = ""
        if let since {
            guard let duration = try? Duration(optionText: since), duration > .zero else {
                throw ValidationError("\(since) is not a duration; write such as 10m")
            }
            past = "&since=\(max(1, duration.components.seconds))"
        }
        let client = try view.admin.client()
        var last = 0
        repeat {
            let answer = try client.get("/v1/audit?after=\(last)\(past)")
            let read = try answer.decoded(Answer.self)
            // A gateway that was started again counts from 1.
            last = read.last < last ? 0 : read.last
            if view.json {
                if !follow || !read.lines.isEmpty { try Terminal.result(answer.text, end: "") }
            } else {
                for line in read.lines { try Terminal.result(TerminalStyle.plain.shown(line.row)) }
            }
            if follow { usleep(Self.pause) }
        } while follow
    }
}
