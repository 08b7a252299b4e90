import Glibc
import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(5))) struct StartedProcessTests {
    /// The output and the end of a program.
    private final class Seen: Sendable {
        let output = Mutex<[UInt8]>([])
        let end = Mutex<ProcessEnd?>(nil)

        var text: String { output.withLock { String(decoding: $0, as: UTF8.self) } }
    }

    /// Whether the process has ended, and its parent has not asked for that yet.
    private func isZombie(_ id: pid_t) -> Bool {
        guard let file = fopen("/proc/\(id)/stat", "re") else { return true }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 512)
        guard fgets(&line, 512, file) != nil else { return true }
        return String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).contains(") Z ")
    }

    private func start(
        _ command: [String], on loop: EventLoop, _ seen: Seen, _ change: (inout ProcessLaunch) -> Void = { _ in }
    ) async throws -> Int32 {
        var launch = ProcessLaunch(command)
        change(&launch)
        let given = launch
        return try await loop.submit { () throws(SystemError) in
            try StartedProcess(given, on: loop) { bytes in
                seen.output.withLock { $0 += bytes }
            } ended: { end in
                seen.end.withLock { $0 = end }
            }.id
        }
    }

    @Test func `the output and the status of a program arrive`() async throws {
        let loop = try EventLoop.start(name: "test")
        let seen = Seen()
        let id = try await start(["sh", "-c", "echo one; echo two >&2; pwd; echo $A; exit 7"], on: loop, seen) {
            $0.folder = "/usr"
            $0.variables = ["A": "b"]
        }
        try await eventually { seen.end.withLock { $0 } != nil }
        #expect(seen.end.withLock { $0 } == .exited(7))
        #expect(seen.text == "one\ntwo\n/usr\nb\n")
        #expect(kill(id, 0) != 0)
        loop.stop()
    }

    @Test func `a program has no descriptor of this process, and its input ends with this process only`() async throws {
        let loop = try EventLoop.start(name: "test")
        let seen = Seen()
        let opened = open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(opened) }
        #expect(fcntl(opened, F_SETFD, 0) == 0)
        // Neither a pipe nor a folder that the program itself opens is in the way.
        let look = "n=3; while [ $n -lt 1000 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n+1)); done; echo end"
        let id = try await start(["sh", "-c", "\(look); read line; echo read"], on: loop, seen)
        try await eventually { seen.text == "end\n" }
        #expect(seen.end.withLock { $0 } == nil)
        kill(-id, SIGTERM)
        try await eventually { seen.end.withLock { $0 } == .killed(signal: SIGTERM) }
        loop.stop()
    }

    @Test func `processes of the group end with the program`() async throws {
        let loop = try EventLoop.start(name: "test")
        let seen = Seen()
        _ = try await start(["sh", "-c", "sleep 600 & echo $!"], on: loop, seen)
        try await eventually { seen.end.withLock { $0 } == .exited(0) }
        let child = try #require(pid_t(seen.text.dropLast()))
        // Another process of the system waits for it.
        try await eventually { kill(child, 0) != 0 || isZombie(child) }
        loop.stop()
    }

    @Test func `a program that does not exist is an error`() async throws {
        let loop = try EventLoop.start(name: "test")
        await #expect(throws: SystemError("posix_spawn", code: ENOENT)) {
            try await start(["/nowhere/program"], on: loop, Seen())
        }
        await #expect(throws: SystemError("posix_spawn", code: ENOENT)) { try await start([], on: loop, Seen()) }
        loop.stop()
    }
}
