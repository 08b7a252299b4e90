import Glibc
import Testing

@testable import HttpWare

@Suite(.serialized, .timeLimit(.minutes(10))) struct SignalsTests {
    @Test func `a signal comes on the loop instead of its default action`() throws {
        let loop = try EventLoop(name: "test")
        var seen: [Int32] = []
        let signals = try Signals([SIGUSR1, SIGHUP], on: loop) { signal in
            #expect(loop.isCurrent)
            seen.append(signal)
            if seen.count == 1 { kill(getpid(), SIGHUP) } else { loop.stop() }
        }
        kill(getpid(), SIGUSR1)
        loop.run()
        #expect(seen == [SIGUSR1, SIGHUP])
        signals.close()
        signals.close()
    }

    @Test func `a signal that cannot be caught is an error`() throws {
        let loop = try EventLoop(name: "test")
        #expect(throws: SystemError.self) { try Signals([SIGKILL], on: loop) { _ in } }
    }
}
