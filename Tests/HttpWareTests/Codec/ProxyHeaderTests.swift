import Testing

@testable import HttpWare

/// `doc/proxy-protocol.txt` of HAProxy's sources.
@Suite struct ProxyHeaderTests {
    private func client(_ client: String, _ server: String) throws -> ProxiedClient {
        try #require(ProxiedClient(SocketAddress(client), to: SocketAddress(server)))
    }

    /// The answer to all bytes at once, and to one after the other; what is left over belongs to the client.
    private func decode(_ bytes: [UInt8]) -> (ProxyHeaderDecoder.Step, rest: Int) {
        func run(most: Int) -> (ProxyHeaderDecoder.Step, Int) {
            var decoder = ProxyHeaderDecoder()
            var place = 0
            while place < bytes.count {
                let end = min(bytes.count, place + most)
                let step = bytes[place..<end].withUnsafeBytes { next in
                    let count = decoder.count(of: next)
                    place += count
                    return decoder.append(UnsafeRawBufferPointer(rebasing: next[..<count]))
                }
                if step != .incomplete { return (step, bytes.count - place) }
            }
            return (.incomplete, 0)
        }
        let whole = run(most: .max / 2)
        let piecemeal = run(most: 1)
        // An invalid header is refused as soon as that is sure.
        if case (.refused, .refused) = (whole.0, piecemeal.0) { return whole }
        #expect(piecemeal == whole)
        return whole
    }

    private func binary(_ command: UInt8, _ family: UInt8, _ block: [UInt8]) -> [UInt8] {
        ProxyProtocol.signature + [command, family, UInt8(block.count >> 8), UInt8(block.count & 0xff)] + block
    }

    @Test(arguments: ProxyProtocol.allCases)
    func `a header that is written is read, and not a byte behind it`(version: ProxyProtocol) throws {
        let rest = Array("GET / HTTP/1.1\r\n".utf8)
        for (first, second) in [
            ("192.0.2.1:56324", "198.51.100.7:443"), ("[2001:db8::1]:1", "[2001:db8::2]:65535"),
            ("255.255.255.255:0", "0.0.0.0:0"),
        ] {
            let proxied = try client(first, second)
            #expect(decode(version.header(proxied) + rest) == (.whole(proxied), rest.count))
        }
        #expect(decode(version.header(nil) + rest) == (.whole(nil), rest.count))
    }

    @Test func `the line of version 1, §2_1`() throws {
        let proxied = try client("192.0.2.1:56324", "198.51.100.7:443")
        #expect(
            String(decoding: ProxyProtocol.v1.header(proxied), as: UTF8.self)
                == "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n")
        #expect(String(decoding: ProxyProtocol.v1.header(nil), as: UTF8.self) == "PROXY UNKNOWN\r\n")
        #expect(decode(Array("PROXY UNKNOWN ff:: :: 1 2\r\n".utf8)).0 == .whole(nil))
    }

    @Test func `the bytes of version 2, §2_2`() throws {
        let proxied = try client("192.0.2.1:258", "198.51.100.7:443")
        #expect(
            ProxyProtocol.v2.header(proxied)
                == binary(0x21, 0x11, [192, 0, 2, 1, 198, 51, 100, 7, 1, 2, 1, 187]))
        #expect(ProxyProtocol.v2.header(nil) == binary(0x20, 0, []))
    }

    @Test func `addresses of both kinds are written as IPv6, without a scope`() throws {
        let mixed = try client("192.0.2.1:1", "[fe80::1]:2")
        let text = String(decoding: ProxyProtocol.v1.header(mixed), as: UTF8.self)
        #expect(text == "PROXY TCP6 ::ffff:192.0.2.1 fe80::1 1 2\r\n")
        let scoped = ProxiedClient(
            .ip(IPAddress(ipv6: 0xfe80 << 48, 1, scope: 3), port: 1), to: SocketAddress("[fe80::2]:2"))
        #expect(
            String(decoding: ProxyProtocol.v1.header(scoped), as: UTF8.self) == "PROXY TCP6 fe80::1 fe80::2 1 2\r\n")
    }

    @Test func `an address outside of IP has no client to report`() {
        #expect(ProxiedClient(.unix(path: ""), to: SocketAddress("192.0.2.1:1")) == nil)
        #expect(ProxiedClient(SocketAddress("192.0.2.1:1"), to: nil) == nil)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\n", "PROXY\r\n", "PROXY TCP4 192.0.2.1 198.51.100.7 1\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 1 2 3\r\n", "PROXY  TCP4 192.0.2.1 198.51.100.7 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 1 2\n", "PROXY TCP4 192.0.2.01 198.51.100.7 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 01 2\r\n", "PROXY TCP4 192.0.2.1 198.51.100.7 1 65536\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 -1 2\r\n", "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
        "PROXY TCP6 192.0.2.1 198.51.100.7 1 2\r\n", "PROXY TCP6 fe80::1%1 2001:db8::2 1 2\r\n",
        "PROXY UDP4 192.0.2.1 198.51.100.7 1 2\r\n", "PROXY tcp4 192.0.2.1 198.51.100.7 1 2\r\n",
        "proxy UNKNOWN\r\n", "PROXY UNKNOWN\n",
    ])
    func `an invalid line is refused`(line: String) {
        guard case .refused = decode(Array(line.utf8)).0 else {
            Issue.record("taken: \(line)")
            return
        }
    }

    @Test func `a line is no longer than 107 bytes, §2_1`() {
        let longest = "PROXY UNKNOWN " + String(repeating: "x", count: 91) + "\r\n"
        #expect(longest.utf8.count == 107)
        #expect(decode(Array(longest.utf8)).0 == .whole(nil))
        guard case .refused = decode(Array(("PROXY UNKNOWN " + String(repeating: "x", count: 92) + "\r\n").utf8)).0
        else {
            Issue.record("a longer one is taken")
            return
        }
        let endless = decode(Array(("PROXY UNKNOWN " + String(repeating: "x", count: 5000)).utf8)).0
        guard case .refused = endless else {
            Issue.record("one without an end is waited for")
            return
        }
    }

    @Test func `version 2 is refused where it is broken, §2_2`() {
        let block: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 7, 1, 2, 1, 187]
        let broken: [[UInt8]] = [
            Array(ProxyProtocol.signature.dropLast()) + [0x0b, 0x21, 0x11, 0, 12] + block,
            binary(0x11, 0x11, block), binary(0x22, 0x11, block), binary(0x2f, 0x11, block),
            binary(0x21, 0x12, block), binary(0x21, 0x22, block), binary(0x21, 0x41, block),
            binary(0x21, 0x11, Array(block.dropLast())), binary(0x21, 0x21, block), binary(0x21, 0x31, block),
            binary(0x21, 0x11, block + [4]), binary(0x21, 0x11, block + [4, 0, 2, 0]),
            ProxyProtocol.signature + [0x21, 0x11, 0xff, 0xff] + block,
        ]
        for bytes in broken {
            guard case .refused = decode(bytes).0 else {
                Issue.record("taken: \(bytes)")
                continue
            }
        }
    }

    @Test func `details behind the addresses are passed over, a connection of the proxy's own may state anything`()
        throws
    {
        let block: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 7, 1, 2, 1, 187]
        let proxied = try client("192.0.2.1:258", "198.51.100.7:443")
        #expect(decode(binary(0x21, 0x11, block + [4, 0, 2, 0, 0, 0xea, 0, 1, 7])).0 == .whole(proxied))
        #expect(decode(binary(0x20, 0x77, [1, 2, 3])).0 == .whole(nil))
        #expect(decode(binary(0x21, 0x00, [1, 2, 3])).0 == .whole(nil))
        #expect(decode(binary(0x21, 0x31, [UInt8](repeating: 1, count: 216))).0 == .whole(nil))
    }

    @Test func `a checksum has to be right, §2_2_3`() throws {
        // The check value of CRC-32C.
        #expect(ProxyHeaderDecoder.checksum(Array("123456789".utf8)) == 0xe306_9283)
        let block: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 7, 1, 2, 1, 187, 3, 0, 4, 0, 0, 0, 0]
        var bytes = binary(0x21, 0x11, block)
        let sum = ProxyHeaderDecoder.checksum(bytes)
        for index in 0..<4 {
            bytes[bytes.count - 4 + index] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32(index)))
        }
        #expect(decode(bytes).0 == .whole(try client("192.0.2.1:258", "198.51.100.7:443")))
        bytes[16] = 193
        guard case .refused = decode(bytes).0 else {
            Issue.record("a wrong checksum is taken")
            return
        }
    }
}
