import Glibc
import Testing

@testable import HttpWare

/// A name server on a port of 127.0.0.1, over UDP and TCP, that answers what a test says. Lives on one loop.
final class ScriptedNameServer: SocketEventHandler {
    enum Reply {
        case addresses([String], ttl: UInt32)
        case alias(String, ttl: UInt32, addresses: [String], addressTTL: UInt32)
        case nothing
        case code(UInt8)
        case silence
        /// Over UDP only a flag that says to ask over TCP, there the addresses.
        case truncated([String], ttl: UInt32)
    }

    /// The answers, by name and type: `A example.test`. Other questions are answered with "no such name".
    var replies: [String: Reply] = [:]
    /// The questions received, in order; with `/tcp` after questions over TCP.
    private(set) var questions: [String] = []
    let address: SocketAddress

    private let datagrams: SocketEvents
    private let listener: Listener

    /// Makes a server. With `besides` it has the port of that server, on the next address of the loopback network.
    init(loop: EventLoop, besides other: ScriptedNameServer? = nil) throws {
        let wanted = try other.map { try #require(SocketAddress("127.0.0.2:\($0.address.port ?? 0)")) } ?? .loopback
        let (tcp, udp, address) = try ScriptedNameServer.makeSockets(at: wanted)
        self.address = address
        datagrams = SocketEvents(loop: loop, descriptor: udp)
        listener = Listener(loop, tcp)
        datagrams.handler = self
        listener.server = self
        datagrams.enableReading()
    }

    /// Makes a TCP and a UDP socket of one port; another port, if the one for TCP is not free for UDP.
    private static func makeSockets(at wanted: SocketAddress) throws -> (tcp: Int32, udp: Int32, SocketAddress) {
        for _ in 0..<100 {
            let tcp = try Socket.listen(on: wanted, sharesPort: false)
            let address = try #require(Socket.localAddress(tcp))
            let udp = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
            if address.withSystemAddress({ bind(udp, $0, $1) }) == 0 { return (tcp, udp, address) }
            Socket.close(tcp)
            Socket.close(udp)
        }
        throw SystemError("bind", code: EADDRINUSE)
    }

    func count(_ question: String) -> Int { questions.count { $0 == question } }

    func socketReadable() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var peer = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &peer) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { peer in
                let count = recvfrom(datagrams.descriptor, &buffer, buffer.count, 0, peer, &length)
                guard count > 12, let answer = answer(Array(buffer.prefix(count)), overTCP: false) else { return }
                sendto(datagrams.descriptor, answer, answer.count, 0, peer, length)
            }
        }
    }

    func socketWritable() {}

    fileprivate func answer(_ query: [UInt8], overTCP: Bool) -> [UInt8]? {
        var index = 12
        var labels: [String] = []
        while query[index] != 0 {
            labels.append(String(decoding: query[index + 1...index + Int(query[index])], as: UTF8.self))
            index += Int(query[index]) + 1
        }
        let isA = query[index + 2] == 1
        let name = labels.joined(separator: ".")
        let question = "\(isA ? "A" : "AAAA") \(name)"
        questions.append(overTCP ? question + "/tcp" : question)
        var flags: (UInt8, UInt8) = (0x84, 0x80)
        var records: [[UInt8]] = []
        func addresses(_ texts: [String], of owner: [UInt8], ttl: UInt32) {
            for text in texts {
                guard let address = IPAddress(text), address.isIPv4 == isA else { continue }
                let bytes = withUnsafeBytes(of: address.in6) { Array($0) }
                records.append(record(owner, type: isA ? 1 : 28, ttl: ttl, isA ? Array(bytes.suffix(4)) : bytes))
            }
        }
        let own: [UInt8] = [0xc0, 12]
        switch replies[question] ?? replies[name] ?? .code(3) {
        case .addresses(let texts, let ttl): addresses(texts, of: own, ttl: ttl)
        case .alias(let alias, let ttl, let texts, let addressTTL):
            var target: [UInt8] = []
            for label in alias.split(separator: ".") { target += [UInt8(label.utf8.count)] + Array(label.utf8) }
            target.append(0)
            records.append(record(own, type: 5, ttl: ttl, target))
            addresses(texts, of: target, ttl: addressTTL)
        case .nothing: break
        case .code(let code): flags.1 |= code
        case .silence: return nil
        case .truncated(let texts, let ttl):
            if overTCP { addresses(texts, of: own, ttl: ttl) } else { flags.0 |= 2 }
        }
        return Array(query[0..<2]) + [flags.0, flags.1, 0, 1, 0, UInt8(records.count), 0, 0, 0, 0]
            + query[12..<index + 5] + records.joined()
    }

    private func record(_ owner: [UInt8], type: UInt8, ttl: UInt32, _ data: [UInt8]) -> [UInt8] {
        owner + [0, type, 0, 1] + withUnsafeBytes(of: ttl.bigEndian) { Array($0) } + [0, UInt8(data.count)] + data
    }

    private final class Listener: SocketEventHandler {
        unowned var server: ScriptedNameServer?
        private let events: SocketEvents
        private var connections: [Connection] = []

        init(_ loop: EventLoop, _ descriptor: Int32) {
            events = SocketEvents(loop: loop, descriptor: descriptor)
            events.handler = self
            events.enableReading()
        }

        func socketReadable() {
            guard case .accepted(let descriptor, _) = Socket.accept(events.descriptor), let server else { return }
            connections.append(Connection(events.loop, descriptor, server))
        }

        func socketWritable() {}
    }

    private final class Connection: SocketEventHandler {
        private unowned let server: ScriptedNameServer
        private let events: SocketEvents
        private var received: [UInt8] = []

        init(_ loop: EventLoop, _ descriptor: Int32, _ server: ScriptedNameServer) {
            self.server = server
            events = SocketEvents(loop: loop, descriptor: descriptor)
            events.handler = self
            events.enableReading()
        }

        func socketReadable() {
            guard case .bytes(let count) = Socket.read(events.descriptor, into: events.loop.readBuffer) else {
                return events.close()
            }
            received += events.loop.readBuffer.prefix(count)
            while received.count > 2, received.count >= 2 + Int(received[0]) << 8 + Int(received[1]) {
                let length = Int(received[0]) << 8 + Int(received[1])
                if let answer = server.answer(Array(received[2..<2 + length]), overTCP: true) {
                    let framed = [UInt8(answer.count >> 8), UInt8(answer.count & 255)] + answer
                    framed.withUnsafeBytes { _ = Socket.write(events.descriptor, $0) }
                }
                received.removeFirst(2 + length)
            }
        }

        func socketWritable() {}
    }
}
