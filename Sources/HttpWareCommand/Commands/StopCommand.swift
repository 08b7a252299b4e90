import ArgumentParser
import Glibc
import HttpWare

/// `httpware stop`: ends a running gateway.
struct StopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "End a running gateway after its requests, as SIGTERM does.",
        discussion: """
            No connection is accepted any more, requests in progress are finished, and then the gateway ends. With --now it \
            ends without finishing them. A service manager that restarts the gateway, such as systemd, is to stop it itself.
            """)

    @Flag(help: "Do not wait for requests in progress.")
    var now = false
    @Option(help: "How long to wait for the end, in seconds; 0 does not wait.")
    var wait = 60
    @Option(help: "The process to signal, in place of asking the admin listener.")
    var pid: Int32?
    @OptionGroup var admin: AdminOption

    private struct Answer: Decodable {
        let process: Int
    }

    func validate() throws {
        if !(0...86_400).contains(wait) { throw ValidationError("--wait is a number of seconds, 0 to 86400") }
    }

    func run() throws {
        if let pid {
            let process = try RunningProcess(pid)
            try process.send(SIGTERM)
            if now {
                // Two signals at once could be one.
                usleep(4 * StopCommand.pause)
                if process.isThere { try process.send(SIGTERM) }
            }
            return try end { !process.isThere }
        }
        let client = try admin.client()
        let answer = try client.post(now ? "/v1/stop?now=true" : "/v1/stop").decoded(Answer.self)
        // The listener is closed last.
        try end {
            guard let status = try? client.answer(.get, "/v1/status", within: .seconds(2)),
                let process = try? status.decoded(Answer.self).process
            else { return true }
            return process != answer.process
        }
    }

    /// The pause between two looks, in microseconds.
    private static let pause: UInt32 = 50_000

    private func end(_ isOver: () -> Bool) throws {
        guard wait > 0 else { return }
        let clock = SystemLoopClock()
        let limit = clock.now() + .seconds(wait)
        while !isOver() {
            if clock.now() >= limit {
                Terminal.error("the gateway still finishes requests after \(wait)s; --now ends it without them")
                throw ExitCode(1)
            }
            usleep(StopCommand.pause)
        }
        try Terminal.result("stopped")
    }
}
