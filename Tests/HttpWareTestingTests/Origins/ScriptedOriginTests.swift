import Glibc
import HttpWare
import HttpWareTesting
import Testing

@Suite struct ScriptedOriginTests {
    /// Connects, sends, reads up to the end, and answers what came; `nil` for a reset.
    private func talk(_ port: UInt16, _ text: String, pieces: [Int] = []) throws -> String? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
        try #require(write(descriptor, text, text.utf8.count) == text.utf8.count)
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0 { return nil }
            if count == 0 { return String(decoding: answer, as: UTF8.self) }
            answer += buffer[..<count]
        }
    }

    @Test func `a script is followed to its end`() async throws {
        let answer = try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /a ", lines: ["host: a"], without: ["Cookie"]), .expect("body"),
            .send(Array("hello".utf8), piece: 1), .close,
        ]) { origin in
            let answer = try talk(origin.port, "GET /a HTTP/1.1\r\nHost: a\r\n\r\nbody")
            #expect(origin.heads == ["GET /a HTTP/1.1\r\nHost: a\r\n\r\n"])
            return answer
        }
        #expect(answer == "hello")
    }

    @Test func `several connections come one after the other`() async throws {
        try await ScriptedOrigin.run([.read(1), .send("1"), .close, .accept, .read(1), .reset]) { origin in
            let answers = try [talk(origin.port, "x"), talk(origin.port, "y")]
            #expect(answers == ["1", nil])
        }
    }

    @Test func `a pause lasts until the test goes on`() async throws {
        try await ScriptedOrigin.run([.read(1), .pause, .send("1"), .close]) { origin in
            origin.proceed()
            let answer = try talk(origin.port, "x")
            #expect(answer == "1")
        }
    }

    @Test(
        arguments: [
            [.expect("GET"), .close], [.expectHead(startingWith: "GET"), .close],
            [.expectHead(startingWith: "POST", lines: ["X: y"]), .close],
            [.expectHead(startingWith: "POST", without: ["Host"]), .close],
        ] as [[ScriptedOrigin.Step]])
    func `a request that the script does not expect fails the test`(script: [ScriptedOrigin.Step]) async throws {
        await #expect(throws: ScriptedOrigin.Failure.self) {
            try await ScriptedOrigin.run(script) { origin in
                _ = try? talk(origin.port, "POST / HTTP/1.1\r\nHost: a\r\n\r\n")
            }
        }
    }

    @Test func `a step that was not reached fails the test`() async throws {
        let failure = await #expect(throws: ScriptedOrigin.Failure.self) {
            try await ScriptedOrigin.run([.read(1), .send("1"), .closeWriting, .read(1)]) { origin in
                _ = try talk(origin.port, "x")
            }
        }
        #expect(failure?.description.contains("step 5 of 5") == true)
    }
}
