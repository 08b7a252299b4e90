import Glibc
public import HttpWare
import Synchronization

/// An origin server that follows a script of raw bytes, on a port that the system chooses, on a separate thread.
///
/// ```swift
/// try await ScriptedOrigin.run([
///     .expectHead(startingWith: "GET /a HTTP/1.1"),
///     .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
///     .expectEnd,
/// ]) { origin in
///     // … make the code under test call 127.0.0.1 at origin.port
/// }
/// ```
///
/// Any other input than the script expects, or a step that was not reached, fails the test. Each step may take three
/// minutes, because a machine may be busy with other tests. An origin that is made without `run` ends with `verify` or
/// `stop`.
public final class ScriptedOrigin: Sendable {
    /// One line of a script.
    public enum Step: Sendable {
        /// Waits for a connection, and leaves the previous one open. If a script does not begin with it, it is done
        /// first.
        case accept
        /// Reads exactly these bytes.
        case expect([UInt8])
        /// Reads to the end of a head that begins with the text and contains each of the lines.
        case expectHead(startingWith: String, lines: [String] = [], without: [String] = [])
        /// Reads that many bytes, whatever their values.
        case read(Int)
        /// Waits until the other end closes, or resets.
        case expectEnd
        /// Sends the bytes, in pieces of that size with a short pause between them.
        case send([UInt8], piece: Int = .max)
        /// Closes the connection.
        case close
        /// Announces that no more will be sent; reading continues.
        case closeWriting
        /// Resets the connection.
        case reset
        /// Waits until the test calls `proceed()`.
        case pause

        /// Reads exactly this text.
        public static func expect(_ text: String) -> Step { .expect(Array(text.utf8)) }

        /// Sends this text at once.
        public static func send(_ text: String) -> Step { .send(Array(text.utf8)) }
    }

    /// Why a script failed.
    public struct Failure: Error, CustomStringConvertible {
        /// The step, counted from 1, and the input in its place.
        public let description: String
    }

    /// The port that it listens on, at 127.0.0.1.
    public let port: UInt16

    private struct State {
        var heads: [String] = []
        var failure: Failure?
        var stepsDone = 0
        var isFinished = false
        var gate = 0
        var isStopping = false
    }

    private let steps: [Step]
    private let state = Mutex(State())

    /// Starts to listen and to follow the script. Throws if there is no socket.
    public init(_ steps: [Step]) throws {
        if case .accept = steps.first { self.steps = steps } else { self.steps = [.accept] + steps }
        let listener = try Socket.listen(on: .loopback, sharesPort: false)
        guard let port = Socket.localAddress(listener)?.port else {
            Socket.close(listener)
            throw SystemError("getsockname")
        }
        self.port = port
        DetachedThread.start { [self] in
            var player = Player(origin: self, listener: listener)
            player.play()
        }
    }

    /// Runs `body` with an origin server, and fails unless the whole script was followed.
    public static func run<Result>(
        _ steps: [Step], _ body: (ScriptedOrigin) async throws -> Result
    ) async throws -> Result {
        let origin = try ScriptedOrigin(steps)
        do {
            let result = try await body(origin)
            try await origin.verify()
            return result
        } catch {
            origin.stop()
            throw error
        }
    }

    /// Its address.
    public var address: SocketAddress { SocketAddress.loopback.with(port: port) }

    /// The heads that were read so far.
    public var heads: [String] { state.withLock { $0.heads } }

    /// Lets a paused script continue.
    public func proceed() { state.withLock { $0.gate += 1 } }

    /// Waits for the end of the script, for some seconds. Throws if the script was not followed to its end.
    public func verify() async throws {
        do {
            try await eventually(within: .seconds(10)) {
                let (isFinished, failure) = state.withLock { ($0.isFinished, $0.failure) }
                if let failure { throw failure }
                return isFinished
            }
            stop()
        } catch is NeverHeld {
            let done = state.withLock { $0.stepsDone }
            stop()
            throw Failure(
                description: "step \(done + 1) of \(steps.count) was not reached: \(steps[min(done, steps.count - 1)])")
        }
    }

    /// Ends the script early.
    public func stop() { state.withLock { $0.isStopping = true } }

    /// Follows the script on the thread, over one connection after the other.
    private struct Player: ~Copyable {
        let origin: ScriptedOrigin
        let listener: Int32
        var descriptor: Int32 = -1
        var others: [Int32] = []
        var input: [UInt8] = []

        init(origin: ScriptedOrigin, listener: Int32) {
            self.origin = origin
            self.listener = listener
        }

        deinit {
            for open in others + [descriptor, listener] where open >= 0 { Socket.close(open) }
        }

        mutating func play() {
            for (index, step) in origin.steps.enumerated() {
                do throws(Failure) {
                    try takeStep(step)
                } catch {
                    let text = "step \(index + 1) of \(origin.steps.count): \(error.description)"
                    return origin.state.withLock { $0.failure = Failure(description: text) }
                }
                origin.state.withLock { $0.stepsDone = index + 1 }
            }
            origin.state.withLock { $0.isFinished = true }
            // Open connections stay open until the test has checked them.
            try? eventuallyBlocking(within: .seconds(3600), every: .milliseconds(10)) {
                origin.state.withLock { $0.isStopping }
            }
        }

        private mutating func takeStep(_ step: Step) throws(Failure) {
            switch step {
            case .accept: try accept()
            case .expect(let bytes): try expect(bytes)
            case .expectHead(let start, let lines, let absent): try expectHead(start, lines, absent)
            case .read(let count):
                while input.count < count { try readMore("\(count) bytes") }
                input.removeFirst(count)
            case .expectEnd: try expectEnd()
            case .send(let bytes, let piece): try send(bytes, piece)
            case .close:
                Socket.close(descriptor)
                descriptor = -1
            case .closeWriting: Socket.shutdownWriting(descriptor)
            case .reset:
                Socket.reset(descriptor)
                descriptor = -1
            case .pause:
                try waitUntil("the test to go on") {
                    origin.state.withLock { state in
                        guard state.gate > 0 else { return false }
                        state.gate -= 1
                        return true
                    }
                }
            }
        }

        private mutating func accept() throws(Failure) {
            if descriptor >= 0 { others.append(descriptor) }
            input = []
            try waitFor(listener, POLLIN, "a connection")
            guard case .accepted(let accepted, _) = Socket.accept(listener) else {
                throw Failure(description: "the connection failed while it waited")
            }
            descriptor = accepted
        }

        private mutating func expect(_ bytes: [UInt8]) throws(Failure) {
            while input.count < bytes.count, bytes.starts(with: input) { try readMore(show(bytes)) }
            guard input.starts(with: bytes) else {
                throw Failure(description: "expected \(show(bytes)), got \(show(input))")
            }
            input.removeFirst(bytes.count)
        }

        private mutating func expectHead(_ start: String, _ lines: [String], _ absent: [String]) throws(Failure) {
            var head = ""
            while true {
                let text = String(decoding: input, as: UTF8.self)
                if let end = text.ranges(of: "\r\n\r\n").first {
                    head = String(text[..<end.upperBound])
                    input.removeFirst(head.utf8.count)
                    break
                }
                try readMore("a head that starts with \(start)")
            }
            origin.state.withLock { $0.heads.append(head) }
            let received = head.split(separator: "\r\n").map { $0.lowercased() }
            guard head.hasPrefix(start) else {
                throw Failure(description: "expected \(start), got \(show(Array(head.utf8)))")
            }
            for line in lines where !received.contains(line.lowercased()) {
                throw Failure(description: "no line \(line) in \(show(Array(head.utf8)))")
            }
            for name in absent where received.contains(where: { $0.hasPrefix(name.lowercased() + ":") }) {
                throw Failure(description: "there is a field \(name) in \(show(Array(head.utf8)))")
            }
        }

        private mutating func expectEnd() throws(Failure) {
            guard input.isEmpty else { throw Failure(description: "expected the end, got \(show(input))") }
            try waitFor(descriptor, POLLIN, "the end of the connection")
            let read = readOnce()
            guard read <= 0 else { throw Failure(description: "expected the end, got \(show(input))") }
        }

        private mutating func send(_ bytes: [UInt8], _ piece: Int) throws(Failure) {
            var start = 0
            while start < bytes.count {
                try waitFor(descriptor, POLLOUT, "room to send")
                let end = piece == .max ? bytes.count : min(bytes.count, start + piece)
                let sent = bytes[start..<end].withUnsafeBytes { Socket.write(descriptor, $0) }
                switch sent {
                case .bytes(let count): start += count
                case .wouldBlock: break
                case .end, .failed: throw Failure(description: "the connection broke while sending")
                }
                // So that the other end reads each piece alone.
                if piece != .max { usleep(500) }
            }
        }

        // MARK: Reading

        private mutating func readMore(_ wanted: String) throws(Failure) {
            try waitFor(descriptor, POLLIN, wanted)
            guard readOnce() > 0 else {
                throw Failure(description: "expected \(wanted), got \(show(input)) and the end of the connection")
            }
        }

        /// The number of received bytes; 0 at the end, negative after a failure.
        private mutating func readOnce() -> Int {
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            let result = buffer.withUnsafeMutableBytes { Socket.read(descriptor, into: $0) }
            switch result {
            case .bytes(let count):
                input += buffer[..<count]
                return count
            case .end: return 0
            case .wouldBlock, .failed: return -1
            }
        }

        private func waitFor(_ descriptor: Int32, _ events: Int32, _ wanted: String) throws(Failure) {
            guard descriptor >= 0 else { throw Failure(description: "expected \(wanted) on a closed connection") }
            try waitUntil(wanted) {
                var poll = pollfd(fd: descriptor, events: Int16(events), revents: 0)
                return Glibc.poll(&poll, 1, 10) > 0
            }
        }

        private func waitUntil(_ wanted: String, _ isDone: () -> Bool) throws(Failure) {
            var isStopping = false
            do {
                try eventuallyBlocking(within: .seconds(180), every: .milliseconds(1)) {
                    if isDone() { return true }
                    isStopping = origin.state.withLock { $0.isStopping }
                    return isStopping
                }
            } catch {
                let got = input.isEmpty ? "nothing" : show(input)
                throw Failure(description: "expected \(wanted), got \(got) in three minutes")
            }
            if isStopping { throw Failure(description: "the script was ended while it waited for \(wanted)") }
        }

        private func show(_ bytes: [UInt8]) -> String {
            String(decoding: bytes.prefix(500), as: UTF8.self).debugDescription
        }
    }
}
