import Glibc
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct SocketEventsTests {
    /// Lends a loop that does not run yet, with both ends of a connected pair of non-blocking sockets.
    private func withPair(_ body: (EventLoop, _ near: Int32, _ far: Int32) throws -> Void) throws {
        let loop = try EventLoop(name: "test")
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        #expect(socketpair(AF_UNIX, type, 0, &ends) == 0)
        try body(loop, ends[0], ends[1])
    }

    private final class Handler: SocketEventHandler {
        let events: SocketEvents
        var onReadable: (Handler) -> Void = { _ in }
        var onWritable: (Handler) -> Void = { _ in }
        var readable = 0
        var writable = 0

        init(_ loop: EventLoop, _ descriptor: Int32) {
            events = SocketEvents(loop: loop, descriptor: descriptor)
            events.handler = self
        }

        func socketReadable() {
            readable += 1
            onReadable(self)
        }

        func socketWritable() {
            writable += 1
            onWritable(self)
        }
    }

    /// Whether the other end of a pair is closed: seen from this end, for a descriptor's number may be another test's by now.
    private func isOtherClosed(_ far: Int32, _ loop: EventLoop) -> Bool {
        switch Socket.read(far, into: loop.readBuffer) {
        case .end, .failed(ECONNRESET): true
        default: false
        }
    }

    private func send(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { #expect(Socket.write(descriptor, UnsafeRawBufferPointer($0)) == .bytes($0.count)) }
    }

    @Test func `bytes are told and read, then the end`() throws {
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            var read = ""
            handler.onReadable = { handler in
                switch Socket.read(near, into: loop.readBuffer) {
                case .bytes(let count):
                    read += String(decoding: loop.readBuffer.prefix(count), as: UTF8.self)
                    #expect(Socket.read(near, into: loop.readBuffer) == .wouldBlock)
                    Socket.shutdownWriting(far)
                case .end:
                    handler.events.close()
                    loop.stop()
                case let other: Issue.record("\(other)")
                }
            }
            #expect(handler.events.enableReading() && handler.events.isReading)
            send("hello", to: far)
            loop.run()
            #expect(read == "hello" && handler.readable == 2)
            #expect(handler.events.descriptor == -1)
            #expect(isOtherClosed(far, loop))
            Socket.close(far)
        }
    }

    @Test func `a loop tells how many events wait behind the present one`() throws {
        try withPair { loop, near, far in
            let (reader, writer) = (Handler(loop, near), Handler(loop, far))
            var behind: [Int] = []
            for handler in [reader, writer] {
                handler.onWritable = { handler in
                    behind.append(loop.readyCount)
                    handler.events.disableWriting()
                }
                handler.events.enableWriting()
            }
            reader.onReadable = { handler in
                behind.append(loop.readyCount)
                handler.events.disableReading()
                loop.stop()
            }
            reader.events.enableReading()
            writer.events.enableReading()  // nothing comes
            send("x", to: far)
            loop.run()
            #expect(behind == [2, 1, 0])
        }
    }

    @Test func `a handler may close and release itself within its call`() throws {
        try withPair { loop, near, far in
            var handler: Handler? = Handler(loop, near)
            weak let gone = handler
            handler?.onReadable = { _ in
                handler?.events.close()
                handler = nil
                loop.stop()
            }
            handler?.events.enableReading()
            handler?.events.enableWriting()
            handler?.onWritable = { handler in handler.events.disableWriting() }
            send("x", to: far)
            loop.run()
            #expect(handler == nil && gone == nil)
            #expect(isOtherClosed(far, loop))
            Socket.close(far)
        }
    }

    @Test func `an owner that goes closes the socket, also one whose turn had come`() throws {
        try withPair { loop, near, far in
            var others: [Int32] = [-1, -1]
            let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            #expect(socketpair(AF_UNIX, type, 0, &others) == 0)
            var handlers: [Handler] = [Handler(loop, near), Handler(loop, others[0])]
            var calls = 0
            for handler in handlers {
                handler.onReadable = { _ in
                    calls += 1
                    handlers = []
                    loop.stop()
                }
                handler.events.enableReading()
            }
            send("x", to: far)
            send("x", to: others[1])
            loop.run()
            #expect(calls == 1)
            #expect(isOtherClosed(far, loop) && isOtherClosed(others[1], loop))
            Socket.close(far)
            Socket.close(others[1])
        }
    }

    @Test func `reading that is disabled is backpressure, and goes on when enabled`() throws {
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            handler.onReadable = { handler in
                handler.events.disableReading()
                if handler.readable == 2 { return loop.stop() }
                loop.schedule(after: .milliseconds(1)) {
                    #expect(handler.readable == 1)
                    handler.events.enableReading()
                }
            }
            handler.events.enableReading()
            handler.events.enableReading()
            send("x", to: far)  // never read, so it stays readable
            loop.run()
            #expect(handler.readable == 2)
            Socket.close(far)
        }
    }

    @Test func `a full socket is told writable when the peer has read`() throws {
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            let bytes = UnsafeRawBufferPointer(loop.writeBuffer)
            loop.writeBuffer.initializeMemory(as: UInt8.self, repeating: 0)
            while case .bytes = Socket.write(near, bytes) {}
            #expect(Socket.write(near, bytes) == .wouldBlock)
            handler.onWritable = { handler in
                #expect(handler.events.isWriting)
                handler.events.disableWriting()
                #expect(!handler.events.isWriting)
                loop.stop()
            }
            handler.events.enableWriting()
            handler.events.enableWriting()
            loop.schedule(after: .milliseconds(1)) {
                #expect(handler.writable == 0)
                while case .bytes = Socket.read(far, into: loop.readBuffer) {}
            }
            loop.run()
            #expect(handler.writable == 1)
            Socket.close(far)
        }
    }

    @Test func `a detached descriptor stays open`() throws {
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            handler.events.enableReading()
            #expect(handler.events.detach() == near)
            #expect(handler.events.detach() == -1)
            #expect(!handler.events.enableReading() && !handler.events.enableWriting())
            handler.events.close()
            #expect(!isOtherClosed(far, loop))
            Socket.close(near)
            Socket.close(far)
        }
    }

    @Test func `work that a handler leaves behind runs before the loop waits`() throws {
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            var ran = false
            handler.onReadable = { handler in
                handler.events.disableReading()
                loop.later {
                    ran = true
                    loop.stop()
                }
            }
            handler.events.enableReading()
            send("x", to: far)
            loop.run()
            #expect(ran)
            Socket.close(far)
        }
    }

    // MARK: Low priority

    @Test func `a socket of low priority is told like others, also when it was made so while it is watched`() throws {
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            #expect(handler.events.enableReading())
            handler.events.setLowPriority(true)
            #expect(handler.events.isReading && handler.events.isLowPriority)
            handler.onReadable = { handler in
                _ = Socket.read(near, into: loop.readBuffer)
                if handler.readable == 2 { handler.events.setLowPriority(false) }
                if handler.readable == 3 { loop.stop() } else { self.send("x", to: far) }
            }
            send("x", to: far)
            loop.run()
            #expect(handler.readable == 3 && handler.events.isReading && !handler.events.isLowPriority)
            Socket.close(far)
        }
    }

    @Test func `a socket of low priority that is not read is not told, and one that is read again is`() throws {
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            handler.events.setLowPriority(true)
            #expect(handler.events.enableReading())
            handler.events.disableReading()
            send("x", to: far)
            loop.later { loop.later { loop.stop() } }
            loop.run()
            #expect(handler.readable == 0 && !handler.events.isReading)
            Socket.close(far)
        }
        try withPair { loop, near, far in
            let handler = Handler(loop, near)
            handler.onReadable = { _ in
                _ = Socket.read(near, into: loop.readBuffer)
                loop.stop()
            }
            handler.events.setLowPriority(true)
            #expect(handler.events.enableReading())
            handler.events.disableReading()
            #expect(handler.events.enableReading())
            send("x", to: far)
            loop.run()
            #expect(handler.readable == 1)
            Socket.close(far)
        }
    }

    @Test func `a descriptor that cannot be watched with low priority is watched as others are, if possible`() throws {
        let loop = try EventLoop(name: "test")
        let events = SocketEvents(loop: loop, descriptor: open("/dev/null", O_RDONLY | O_CLOEXEC))
        events.setLowPriority(true)
        #expect(events.isLowPriority && !events.enableReading())
        #expect(!events.isLowPriority && !events.isReading)
        events.close()
    }

    @Test func `others are told between those of low priority, and one that goes meanwhile is not told`() throws {
        let loop = try EventLoop(name: "test")
        var low: [Handler] = []
        var far: [Int32] = []
        var order = ""
        func pair() throws -> (Int32, Int32) {
            var ends: [Int32] = [-1, -1]
            let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            #expect(socketpair(AF_UNIX, type, 0, &ends) == 0)
            return (ends[0], ends[1])
        }
        let (near, other) = try pair()
        let usual = Handler(loop, near)
        usual.onReadable = { _ in
            _ = Socket.read(near, into: loop.readBuffer)
            order += "u"
        }
        #expect(usual.events.enableReading())
        for _ in 0..<100 {
            let (near, end) = try pair()
            let handler = Handler(loop, near)
            handler.onReadable = { handler in
                _ = Socket.read(handler.events.descriptor, into: loop.readBuffer)
                order += "l"
                // With the first one the next goes, which is ready as well; and the usual one has something to tell.
                if order.filter({ $0 == "l" }).count == 1 {
                    let next = low[1] === handler ? low[0] : low[1]
                    next.events.close()
                    self.send("x", to: other)
                }
                if order.filter({ $0 == "l" }).count == 99 { loop.stop() }
            }
            handler.events.setLowPriority(true)
            #expect(handler.events.enableReading())
            send("x", to: end)
            low.append(handler)
            far.append(end)
        }
        loop.run()
        #expect(order.filter { $0 == "l" }.count == 99 && low.allSatisfy { $0.readable < 2 })
        // Behind the turn that had begun, before all others.
        let place = order.firstIndex(of: "u").map { order.distance(from: order.startIndex, to: $0) }
        #expect((place ?? 100) <= 64, "\(order)")
        for descriptor in far + [other] { Socket.close(descriptor) }
    }
}
