import Foundation
import HttpWare
import HttpWareTesting
import Testing

@testable import Wares

/// Log lines that go to another machine.
@Suite(.timeLimit(.minutes(2))) struct LogConnectionTests {
    /// A socket on the loopback that takes them.
    private final class Receiver {
        let descriptor: Int32
        private(set) var port: UInt16 = 0
        private var connection: Int32 = -1
        private let isDatagram: Bool

        init(isDatagram: Bool) throws {
            self.isDatagram = isDatagram
            descriptor = socket(
                AF_INET, Int32((isDatagram ? SOCK_DGRAM : SOCK_STREAM).rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, size) | getsockname(descriptor, $0, &size)
                }
            }
            try #require(code == 0)
            port = UInt16(bigEndian: address.sin_port)
            if !isDatagram { try #require(listen(descriptor, 8) == 0) }
            var patience = timeval(tv_sec: 10, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit {
            close(descriptor)
            if connection >= 0 { close(connection) }
        }

        /// The next piece that came; nothing if none comes.
        func take() -> String { String(decoding: takeBytes(), as: UTF8.self) }

        func takeBytes() -> [UInt8] {
            var buffer = [UInt8](repeating: 0, count: 1 << 17)
            if !isDatagram, connection < 0 {
                guard case .accepted(let accepted, _) = Socket.accept(descriptor) else { return [] }
                connection = accepted
                _ = fcntl(connection, F_SETFL, 0)
                var patience = timeval(tv_sec: 10, tv_usec: 0)
                setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
            }
            let count = recv(isDatagram ? descriptor : connection, &buffer, buffer.count, 0)
            return Array(buffer.prefix(max(0, count)))
        }

        func take(until end: String) -> String {
            var text = ""
            while !text.contains(end) {
                let piece = take()
                if piece.isEmpty { break }
                text += piece
            }
            return text
        }
    }

    private func output(_ receiver: Receiver, isDatagram: Bool, _ framing: LogOutput.Framing) -> LogOutput {
        .network(.init(isDatagram: isDatagram, host: "127.0.0.1", port: receiver.port, framing: framing))
    }

    private let writer = LogWriter()

    @Test func `by UDP each line is a message of RFC 5424`() throws {
        let receiver = try Receiver(isDatagram: true)
        let sink = writer.sink(for: output(receiver, isDatagram: true, .rfc5424)) { "dropped \($0)" }
        sink.append(text: "one")
        sink.append(text: #"{"two":2}"#)
        #expect(writer.flush())
        let pattern = try Regex(#"<30>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [!-~]+ httpware \d+ - - (.+)"#)
        for line in ["one", #"{"two":2}"#] {
            let message = receiver.take()
            #expect(message.wholeMatch(of: pattern)?.output[1].substring.map(String.init) == line, "\(message)")
        }
    }

    @Test func `by TCP the length stands before each message - RFC 6587 §3.4.1`() throws {
        let receiver = try Receiver(isDatagram: false)
        let sink = writer.sink(for: output(receiver, isDatagram: false, .rfc5424)) { "dropped \($0)" }
        for line in ["one", "two", "three"] { sink.append(text: line) }
        #expect(writer.flush())
        var rest = receiver.take(until: "three")[...]
        var lines: [String] = []
        while let space = rest.firstIndex(of: " "), let count = Int(rest[..<space]) {
            let start = rest.index(after: space)
            let end = rest.index(start, offsetBy: count)
            lines.append(String(rest[start..<end].split(separator: " ").last ?? ""))
            rest = rest[end...]
        }
        #expect(lines == ["one", "two", "three"])
        #expect(rest.isEmpty)
    }

    @Test(arguments: [true, false])
    func `lines by themselves end with a line feed`(isDatagram: Bool) throws {
        let receiver = try Receiver(isDatagram: isDatagram)
        let sink = writer.sink(for: output(receiver, isDatagram: isDatagram, .lines)) { "dropped \($0)" }
        sink.append(text: "one")
        sink.append(text: "two")
        #expect(writer.flush())
        #expect(receiver.take(until: "two\n").hasSuffix("two\n"))
    }

    @Test func `many lines arrive whole and in order while the reader is slow`() throws {
        let receiver = try Receiver(isDatagram: false)
        let sink = writer.sink(for: output(receiver, isDatagram: false, .lines)) { "dropped \($0)" }
        let line = String(repeating: "x", count: 995)
        for number in 1000..<5000 { sink.append(text: "\(number)\(line)") }
        var bytes: [UInt8] = []
        while bytes.count < 4000 * 1000 {
            let piece = receiver.takeBytes()
            if piece.isEmpty { break }
            bytes += piece
        }
        try #require(bytes.count == 4000 * 1000)
        let numbers = (0..<4000).map { String(decoding: bytes[$0 * 1000..<$0 * 1000 + 4], as: UTF8.self) }
        #expect(numbers == (1000..<5000).map { "\($0)" })
    }

    @Test func `without a listener lines wait, and lines over the limit are dropped and counted`() throws {
        let port = try Receiver(isDatagram: false).port
        let target = LogOutput.Network(isDatagram: false, host: "127.0.0.1", port: port)
        let sink = LogSink(.network(target), writer: writer, queueLimit: 200_000)
        var complaints: [String] = []
        let file = LogFile(sink, notice: { "dropped \($0)" }, complain: { complaints.append($1) })
        let line = String(repeating: "x", count: 999)
        for _ in 0..<1000 { sink.append(text: line) }
        var now: Int64 = 1
        guard case .later = file.write(now: now) else {
            Issue.record("it does not wait")
            return
        }
        #expect(sink.numbers.map(\.value)[0] > 700)
        // After a while what waits is given up.
        for _ in 0..<40 {
            now += 1_000_000_000
            _ = file.write(now: now)
        }
        #expect(sink.numbers.map(\.value) == [1000])
        guard case .later = file.write(now: now) else { return }
        #expect(complaints.count == 1)
    }

    @Test(arguments: [
        ("udp:127.0.0.1:514", "udp:127.0.0.1:514"), ("tcp:logs.example.com:6514", "tcp:logs.example.com:6514"),
        ("tcp:[::1]:601", "tcp:[::1]:601"),
    ])
    func `an output on another machine is read`(text: String, again: String) throws {
        #expect(try LogOutput(optionText: text).optionText == again)
    }

    @Test(arguments: [
        "udp:", "udp:a", "tcp:a:", "tcp:a:0", "tcp:a:65536", "tcp::514", "tcp:[::1]", "tcp:::1:514", "tcp:[1.2.3.4]:1",
        "tcp:a b:1", "tcp:a/b:1", "http:a:1", "udp:a:-1", "udp:a:+1",
    ])
    func `anything else is a mistake`(text: String) {
        #expect(throws: OptionMistake.self) { try LogOutput(optionText: text) }
    }
}
