import Glibc
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct InheritanceTests {
    private func inheritance(_ variables: [String: String]) throws -> Inheritance {
        try Inheritance(variables, command: ["httpware", "run"], process: 7, parent: 5)
    }

    @Test func `variables that a child should not get are taken out, and the rest stays`() throws {
        let all = [
            "LISTEN_PID": "7", "LISTEN_FDS": "0", "LISTEN_FDNAMES": "", "NOTIFY_SOCKET": "/run/n", "WATCHDOG_PID": "7",
            "WATCHDOG_USEC": "2000000", "HTTPWARE_HANDOVER": "1 2", "PATH": "/bin", "SECRET": "kept",
        ]
        let inheritance = try inheritance(all)
        #expect(inheritance.environment == ["PATH": "/bin", "SECRET": "kept"])
        #expect(inheritance.manager?.socket == "/run/n")
        #expect(inheritance.manager?.watchdog == .seconds(2))
        #expect(inheritance.sockets.isEmpty)
    }

    @Test(arguments: ["", "n", "./n", "/", "@", "vsock:2:1"])
    func `a socket of a service manager that is neither a path nor an abstract name is ignored`(socket: String) throws {
        #expect(try inheritance(["NOTIFY_SOCKET": socket]).manager == nil)
    }

    @Test(
        arguments: [("0", nil), ("-1", nil), ("x", nil), ("1", "8"), ("99999999999999999999", nil)]
            as [(String, String?)])
    func `a service manager watches only who is meant, at an interval that is one`(interval: String, process: String?)
        throws
    {
        var variables = ["NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": interval]
        variables["WATCHDOG_PID"] = process
        let manager = try #require(try inheritance(variables).manager)
        #expect(manager.watchdog == nil)
    }

    @Test(arguments: ["", "x", "-1", "1025", "99999999999999999999"])
    func `an invalid number of sockets is refused, but not where it is meant for another`(count: String) throws {
        #expect(throws: InheritanceError.self) { try inheritance(["LISTEN_PID": "7", "LISTEN_FDS": count]) }
        #expect(try inheritance(["LISTEN_PID": "8", "LISTEN_FDS": count]).sockets.isEmpty)
    }

    @Test func `sockets come from the gateway whose place is taken, which is told once`() throws {
        let listener = try Socket.listen(on: .loopback)
        let address = try #require(Socket.localAddress(listener))
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        defer { for descriptor in [listener, ends[0]] { Socket.close(descriptor) } }
        var inheritance = try inheritance(["HTTPWARE_HANDOVER": "5 \(ends[1]) \(listener)=web \(listener)!local"])
        #expect(
            inheritance.sockets == [
                InheritedSocket(descriptor: listener, address: address, name: "web", isManagers: false),
                InheritedSocket(descriptor: listener, address: address, name: "local", isManagers: true),
            ])
        #expect(fcntl(listener, F_GETFD) & FD_CLOEXEC != 0)
        inheritance.tellPredecessor()
        inheritance.tellPredecessor()
        var bytes: [UInt8] = [0, 0]
        #expect(recv(ends[0], &bytes, 2, Int32(MSG_WAITALL)) == 1)
        #expect(bytes[0] == Successor.ready)
    }

    @Test(arguments: ["", "6", "6 9 3=a", "x y", "5", "5 x", "5 1", "5 -3 7=a"])
    func `text that is meant for the child of another process, or names no predecessor, is ignored`(text: String) throws
    {
        let inheritance = try inheritance(["HTTPWARE_HANDOVER": text])
        #expect(inheritance.sockets.isEmpty)
        #expect(inheritance.predecessor == nil)
    }

    @Test(arguments: ["a", "=", "1=web", "99999999999=web", "3", "3web", "900000=web"])
    func `an invalid socket is refused`(text: String) {
        #expect(throws: InheritanceError.self) { try inheritance(["HTTPWARE_HANDOVER": "5 900001 \(text)"]) }
    }

    @Test func `a socket fits by its address, and any port by the name`() throws {
        let address = try #require(SocketAddress("127.0.0.1:8080"))
        let socket = InheritedSocket(descriptor: 3, address: address, name: "web", isManagers: true)
        let fits = [
            ("127.0.0.1:8080", "web"), ("127.0.0.1:8080", "other"), ("127.0.0.1:0", "web"), ("127.0.0.1:0", "other"),
            ("0.0.0.0:8080", "web"), ("127.0.0.1:8081", "web"), ("0.0.0.0:0", "web"), ("unix:/web", "web"),
        ].map { bind, name in SocketAddress(bind).map { socket.fits($0, name: name) } }
        #expect(fits == [true, true, true, false, false, false, false, false])
    }
}
