import Glibc
import HttpWare
import Testing

@testable import Jail

/// Processes behind a wall, where the kernel allows namespaces, as on the machines of the tests.
private enum Walled {
    static func start(_ command: [String]) throws -> JailedProcess {
        var mask = sigset_t()
        sigemptyset(&mask)
        return try withUnsafePointer(to: mask) {
            try JailedProcess(
                command, environment: ["PATH": "/usr/bin:/bin"], mask: $0,
                plan: JailPlan(ports: [80, 443], answersNames: true, exposed: [5432]))
        }
    }

    static let isAllowed = (try? start(["true"])) != nil
}

@Suite(.enabled(if: Walled.isAllowed)) struct JailedProcessTests {
    private func end(of process: JailedProcess) -> Int32 {
        var status: Int32 = 0
        while waitpid(process.id, &status, 0) < 0, errno == EINTR {}
        return status >> 8 & 0xff
    }

    @Test func `the descriptors are listeners of another network namespace, in the order of the plan`() throws {
        let process = try Walled.start(["true"])
        let descriptors = process.takeDescriptors()
        defer { for descriptor in descriptors { Socket.close(descriptor) } }
        #expect(descriptors.map { Socket.localAddress($0)?.port } == [80, 443, 53, 53, 5432, 5432])
        #expect(descriptors.map { fcntl($0, F_GETFD) }.allSatisfy { $0 == FD_CLOEXEC })
        #expect(process.takeDescriptors().isEmpty)
        try process.run()
        #expect(end(of: process) == 0)
    }

    @Test func `the program has no descriptors but 0 to 2, and is the same user`() throws {
        let script = "test $(id -u) = \(getuid()) && test $(ls /proc/self/fd | wc -l) = 4"
        let process = try Walled.start(["sh", "-c", script])
        try process.run()
        #expect(end(of: process) == 0)
    }

    @Test func `the status of the program is that of the process`() throws {
        let process = try Walled.start(["sh", "-c", "exit 7"])
        try process.run()
        #expect(end(of: process) == 7)
    }

    @Test func `a program that does not exist is an error, and its process has ended`() throws {
        let process = try Walled.start(["/no/such/program"])
        #expect(throws: SystemError("execvpe", code: ENOENT)) { try process.run() }
        #expect(kill(process.id, 0) != 0)
    }

    @Test func `a process that is given up ends without running its program`() throws {
        var id: pid_t = 0
        do {
            let process = try Walled.start(["sh", "-c", "exit 0"])
            id = process.id
        }
        #expect(kill(id, 0) != 0)
    }
}
