import HttpWare
import Testing

@testable import Jail

@Suite struct NetlinkMessagesTests {
    /// The messages, each with its type, flags and body.
    private static func split(_ bytes: [UInt8]) -> [(kind: UInt16, flags: UInt16, body: [UInt8])] {
        var all: [(kind: UInt16, flags: UInt16, body: [UInt8])] = []
        var rest = bytes[...]
        while rest.count >= 16 {
            let head = Array(rest.prefix(16))
            let length = head.withUnsafeBytes { Int($0.loadUnaligned(as: UInt32.self)) }
            guard length >= 16, length <= rest.count else { break }
            all.append(
                (
                    head.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 4, as: UInt16.self) },
                    head.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 6, as: UInt16.self) },
                    Array(rest.dropFirst(16).prefix(length - 16))
                ))
            rest = rest.dropFirst(length)
        }
        #expect(rest.isEmpty)
        return all
    }

    @Test func `the loopback goes up first, then come addresses and routes of both families`() {
        let all = NetlinkMessagesTests.split(NetlinkMessages.all)
        #expect(all.map(\.kind) == [16, 20, 20, 24, 24])
        #expect(all.map { $0.body.first } == [0, 2, 10, 2, 10])
        // Each is a request that wants an answer.
        #expect(all.allSatisfy { $0.flags & 5 == 5 && $0.body.count % 4 == 0 })
    }

    @Test func `a route leads every address of its family to this machine`() throws {
        let route = try #require(NetlinkMessagesTests.split(NetlinkMessages.route(2)).first)
        // Family, lengths of prefixes, table 255 (local), scope 254 (host), type 2 (local); then the loopback, number 1.
        #expect(route.body[..<8] == [2, 0, 0, 0, 255, 4, 254, 2])
        #expect(route.body[12...] == [8, 0, 4, 0, 1, 0, 0, 0] || route.body[12...] == [0, 8, 0, 4, 0, 0, 0, 1])
        let other = try #require(NetlinkMessagesTests.split(NetlinkMessages.route(10)).first)
        #expect(other.body[..<8] == [10, 0, 0, 0, 255, 4, 0, 2])
    }

    @Test func `the addresses of the machine stand for no name`() {
        let names = SyntheticNames()
        #expect(names.destination(IPAddress(ipv4: 0xc612_0001), port: 80) == nil)
        #expect(names.destination(IPAddress(ipv6: 0xfd68_7474_7077_0000, 1), port: 80) == nil)
    }
}
