import Foundation
import HttpWare
import HttpWareTesting
import Synchronization
import Testing

@testable import Wares

@Suite struct LogWriterTests {
    private let writer = LogWriter()

    private func sink(_ output: LogOutput) -> LogSink { writer.sink(for: output) { "dropped \($0)" } }

    @Test func `lines of several threads arrive whole, each thread's in order`() async throws {
        let folder = try LogFolder()
        let sink = sink(.file(folder.file("log")))
        let threads = (0..<4).map { number in
            let thread = Foundation.Thread {
                let owner = ThreadOwner()
                for line in 0..<5000 {
                    sink.append(ObjectIdentifier(owner)) { out, _ in
                        out.number(number)
                        out.byte(0x20)
                        out.number(line)
                        out.byte(0x0a)
                    }
                }
                owner.done.withLock { $0 = true }
            }
            return thread
        }
        for thread in threads { thread.start() }
        try await eventually { threads.allSatisfy(\.isFinished) }
        #expect(writer.flush())
        let lines = folder.lines("log").map { $0.split(separator: " ").compactMap { Int($0) } }
        #expect(lines.count == 20_000)
        for number in 0..<4 {
            #expect(lines.filter { $0.first == number }.map { $0[1] } == Array(0..<5000))
        }
    }

    private final class ThreadOwner: Sendable {
        let done = Mutex(false)
    }

    @Test func `one output has one sink`() throws {
        let folder = try LogFolder()
        #expect(sink(.file(folder.file("a"))) === sink(.file(folder.file("a"))))
        #expect(sink(.file(folder.file("a"))) !== sink(.file(folder.file("b"))))
    }

    @Test func `lines are written within a moment, without being asked for`() async throws {
        let folder = try LogFolder()
        sink(.file(folder.file("log"))).append(text: "one")
        try await eventually { !folder.lines("log").isEmpty }
        #expect(folder.lines("log") == ["one"])
    }

    @Test func `a file is appended to`() throws {
        let folder = try LogFolder()
        try "before\n".write(toFile: folder.file("log"), atomically: false, encoding: .utf8)
        sink(.file(folder.file("log"))).append(text: "after")
        #expect(writer.flush())
        #expect(folder.lines("log") == ["before", "after"])
    }

    @Test func `after reopen, lines go to a new file where the old one was renamed`() throws {
        let folder = try LogFolder()
        let sink = sink(.file(folder.file("log")))
        sink.append(text: "one")
        #expect(writer.flush())
        try FileManager.default.moveItem(atPath: folder.file("log"), toPath: folder.file("log.1"))
        writer.reopen()
        #expect(writer.flush())
        sink.append(text: "two")
        #expect(writer.flush())
        #expect(folder.lines("log.1") == ["one"])
        #expect(folder.lines("log") == ["two"])
    }

    @Test func `a file that was removed is noticed without reopen, within a second`() async throws {
        let folder = try LogFolder()
        let sink = sink(.file(folder.file("log")))
        sink.append(text: "one")
        #expect(writer.flush())
        try FileManager.default.removeItem(atPath: folder.file("log"))
        try await eventually {
            sink.append(text: "again")
            #expect(writer.flush())
            return !folder.lines("log").isEmpty
        }
    }

    @Test func `a full disk loses lines and nothing else`() throws {
        let sink = sink(.file("/dev/full"))
        for number in 0..<100_000 { sink.append(text: "line \(number)") }
        #expect(writer.flush())
    }

    /// An output of its own clock, and what it complains of.
    private final class Troubled {
        var said: [String] = []
        var now: Int64 = 0
        let sink: LogSink
        private(set) var file: LogFile?

        init(_ path: String, _ writer: LogWriter) {
            sink = LogSink(.file(path), writer: writer)
            file = LogFile(sink, notice: { "dropped \($0)" }) { [unowned self] _, message in said.append(message) }
        }

        func write(_ line: String, after seconds: Int64) {
            now += seconds * 1_000_000_000
            sink.append(text: line)
            _ = file?.write(now: now)
        }
    }

    @Test func `a full disk is reported once, however many lines it loses`() {
        let output = Troubled("/dev/full", writer)
        for number in 0..<100 { output.write("line \(number)", after: number == 50 ? 3600 : 1) }
        #expect(output.said == ["log lines cannot be written to file:/dev/full: No space left on device"])
    }

    @Test func `trouble that comes again after a calm is reported again, and its end is, too`() throws {
        let folder = try LogFolder()
        let path = folder.file("there/log")
        let output = Troubled(path, writer)
        for _ in 0..<5 { output.write("lost", after: 2) }
        let trouble = "log lines cannot be written to file:\(path): No such file or directory"
        #expect(output.said == [trouble])
        try FileManager.default.createDirectory(
            atPath: folder.file("there"), withIntermediateDirectories: false)
        for _ in 0..<4 { output.write("kept", after: 2) }
        #expect(output.said == [trouble])
        for _ in 0..<5 { output.write("kept", after: 10) }
        #expect(output.said == [trouble, "log lines are written to file:\(path) again"])
        try FileManager.default.removeItem(atPath: folder.file("there"))
        for _ in 0..<5 { output.write("lost", after: 2) }
        #expect(output.said.count == 3 && output.said.last == trouble)
    }

    @Test func `an output without writers is closed, with all that was written to it`() throws {
        let folder = try LogFolder()
        let other = sink(.file(folder.file("other")))
        for number in 0..<20 {
            let sink = sink(.file(folder.file("log \(number)")))
            for line in 0..<100 { sink.append(text: "line \(line)") }
        }
        // Each flush writes, finds what is unused, and writes that once more.
        for _ in 0..<3 {
            other.append(text: "turn")
            #expect(writer.flush())
        }
        for number in 0..<20 { #expect(folder.lines("log \(number)").count == 100) }
        #expect(folder.openFiles() == ["other"])
        #expect(sink(.file(folder.file("other"))) === other)
    }

    @Test func `a reader that stands still blocks no writer, and learns how many lines it missed`() throws {
        let folder = try LogFolder()
        let path = folder.file("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        try #require(reader >= 0)
        defer { close(reader) }
        // A queue of 1 MiB behind a pipe of 64 KiB, and 4 MiB of lines.
        let sink = LogSink(.file(path), writer: writer, queueLimit: 1 << 20)
        let file = LogFile(sink) { "dropped \($0)" }
        let line = String(repeating: "x", count: 99)
        for _ in 0..<40_000 { sink.append(text: line) }
        var output: [UInt8] = []
        var now: Int64 = 0
        for _ in 0..<10_000 {
            let outcome = file.write(now: now)
            now += 1_000_000_000
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            let count = read(reader, &buffer, buffer.count)
            if count > 0 { output += buffer[..<count] }
            if case .all = outcome, count <= 0 { break }
        }
        let lines = output.split(separator: 0x0a).map { String(decoding: $0, as: UTF8.self) }
        let notices = lines.filter { $0.hasPrefix("dropped ") }.compactMap { Int($0.dropFirst(8)) }
        let whole = lines.count { $0 == line }
        #expect(notices.reduce(0, +) > 20_000)
        #expect(whole + notices.reduce(0, +) == 40_000)
        #expect(lines.count == whole + notices.count)
    }
}
