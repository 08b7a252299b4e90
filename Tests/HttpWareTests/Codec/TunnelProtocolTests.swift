@testable import HttpWare
import Testing

@Suite struct TunnelProtocolTests {
    /// A hello for a name, in one record.
    static func hello(_ name: String?, extra: [UInt8] = []) -> [UInt8] {
        var extensions = extra
        if let name {
            let host = Array(name.utf8)
            let entry: [UInt8] = [0] + two(host.count) + host
            extensions += [0, 0] + two(entry.count + 2) + two(entry.count) + entry
        }
        let body: [UInt8] =
            [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + two(2) + [0x13, 0x01] + [1, 0]
            + two(extensions.count) + extensions
        return record([1, 0] + two(body.count) + body)
    }

    static func record(_ message: [UInt8]) -> [UInt8] { [22, 3, 1] + two(message.count) + message }

    private static func two(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xff)] }

    @Test(arguments: [
        ("example.com", "example.com"), ("EXAMPLE.com.", "example.com"), ("a-b.xn--p1ai", "a-b.xn--p1ai"),
    ])
    func `RFC 6066 §3, the name of a hello is the host in lower case`(name: String, host: String) {
        #expect(TunnelProtocol.of(Self.hello(name)) == .tls(serverName: host))
    }

    @Test(arguments: ["", "a b", "a:443", "192.0.2.1", "[::1]", "a..b", "a/b", String(repeating: "a", count: 256)])
    func `RFC 6066 §3, an invalid host name is ignored`(name: String) {
        #expect(TunnelProtocol.of(Self.hello(name)) == .tls(serverName: nil))
    }

    @Test(arguments: ["*", "*.test", "a.*", "-a.test", "a.-b", "7", "127.1", "0x7f.1", "a~b", "a%2e"])
    func `a wildcard, and any text that does not name one host, is ignored`(name: String) {
        #expect(TunnelProtocol.of(Self.hello(name)) == .tls(serverName: nil))
    }

    /// An extension.
    private static func part(_ type: Int, _ data: [UInt8]) -> [UInt8] { two(type) + two(data.count) + data }

    @Test func `a program is known by what it offers, whatever the host, the order and the reserved numbers`() {
        let groups = Self.part(10, Self.two(4) + Self.two(29) + Self.two(23))
        let versions = Self.part(43, [2, 3, 4])
        let protocols = Self.part(16, Self.two(3) + [2] + Array("h2".utf8))
        let program = ClientHello.program(of: Self.hello("a.test", extra: groups + versions + protocols))
        #expect(program != nil)
        for same in [
            Self.hello("b.test", extra: groups + versions + protocols),
            Self.hello(nil, extra: protocols + groups + versions),
            Self.hello(
                "a.test", extra: Self.part(0x3a3a, [0]) + groups + versions + protocols + Self.part(21, [0, 0])),
            Self.hello(
                "a.test",
                extra: Self.part(10, Self.two(6) + [0x8a, 0x8a] + Self.two(23) + Self.two(29)) + versions + protocols),
        ] {
            #expect(ClientHello.program(of: same) == program)
        }
        for other in [
            Self.hello("a.test"), Self.hello("a.test", extra: groups + versions),
            Self.hello("a.test", extra: groups + versions + protocols + Self.part(23, [])),
            Self.hello("a.test", extra: Self.part(10, Self.two(2) + Self.two(29)) + versions + protocols),
            Self.hello("a.test", extra: groups + versions + Self.part(16, Self.two(3) + [2] + Array("h3".utf8))),
        ] {
            #expect(ClientHello.program(of: other) != nil && ClientHello.program(of: other) != program)
        }
    }

    @Test func `a hello that is malformed or incomplete is of no program`() {
        let hello = Self.hello("example.com")
        for count in 0..<hello.count { #expect(ClientHello.program(of: Array(hello[..<count])) == nil, "\(count)") }
        #expect(ClientHello.program(of: Self.record([1, 0, 0, 2, 3, 3])) == nil)
        var broken = hello
        broken[broken.count - 12] ^= 0xff
        #expect(ClientHello.program(of: broken) == nil)
        #expect(ClientHello.program(of: Array("GET / HTTP/1.1".utf8)) == nil)
    }

    @Test func `a hello without a name, or without extensions, is a hello`() {
        #expect(TunnelProtocol.of(Self.hello(nil)) == .tls(serverName: nil))
    }

    @Test func `a hello is read when its last byte is there, not before`() {
        let hello = Self.hello("example.com")
        for count in 0..<hello.count { #expect(TunnelProtocol.of(Array(hello[..<count])) == .unknown, "\(count)") }
        #expect(TunnelProtocol.of(hello + [1, 2, 3]) == .tls(serverName: "example.com"))
    }

    @Test func `RFC 8446 §5.1, a hello in several records is one`() {
        let message = Array(Self.hello("example.com")[5...])
        for size in [1, 3, 4, 50] {
            let records = stride(from: 0, to: message.count, by: size).flatMap {
                Self.record(Array(message[$0..<min($0 + size, message.count)]))
            }
            #expect(TunnelProtocol.of(records) == .tls(serverName: "example.com"), "\(size)")
        }
    }

    @Test func `a malformed hello stays TLS, so that it does not pass unread`() {
        let hello = Self.hello("example.com")
        for place in 9..<hello.count {
            var broken = hello
            broken[place] ^= 0xff
            guard case .tls = TunnelProtocol.of(broken) else {
                Issue.record("byte \(place) makes it \(TunnelProtocol.of(broken))")
                continue
            }
        }
    }

    @Test(arguments: [
        "GET / HTTP/1.1", "PRI * HTTP/2.0\r\n", "OPTIONS *", "get /", "POST http://a", "PROPFIND HTTPS://a/",
        "CONNECT a:1", "CONNECT [::1]:1",
    ])
    func `a request, and the preface of HTTP 2, is HTTP`(text: String) {
        #expect(TunnelProtocol.of(Array(text.utf8)) == .http)
    }

    @Test(arguments: ["", "G", "GET", "GET ", "GET htt", "SSH-2.0-OpenSSH_9.2p1"])
    func `the beginning of a request is waited for`(text: String) {
        #expect(TunnelProtocol.of(Array(text.utf8)) == .unknown)
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "\r\n", "EHLO x", "GET\t/", "GET ftp://a", "GET httpx", "\u{0}\u{1}",
        "* OK IMAP", String(repeating: "A", count: 33), "\u{16}\u{2}",
    ])
    func `anything else is neither`(text: String) {
        #expect(TunnelProtocol.of(Array(text.utf8)) == .other)
    }

    @Test(arguments: [1, 3, 500])
    func `a ClientHello in many records and pieces is parsed once`(fragment: Int) {
        // A message of 8 KiB without extensions that anybody knows, in small records.
        let size = 8192
        let message =
            [1, UInt8(size >> 16), UInt8(size >> 8 & 0xff), UInt8(size & 0xff)] + [UInt8](repeating: 0, count: size)
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: message.count, by: fragment) {
            let part = message[start..<min(start + fragment, message.count)]
            bytes += [22, 3, 1, UInt8(part.count >> 8), UInt8(part.count & 0xff)] + part
        }
        var scan = ClientHello.Scan()
        var parsed = 0
        for end in 1...bytes.count {
            let before = scan.place
            let reading = scan.read(Array(bytes[..<end]))
            parsed += scan.place - before
            #expect(reading == (end == bytes.count ? .whole(serverName: nil) : .incomplete))
        }
        #expect(parsed == bytes.count)
        #expect(ClientHello.read(bytes) == .whole(serverName: nil))
    }
}
