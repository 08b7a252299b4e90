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
    func `RFC 6066 §3, what is no host name is no name`(name: String) {
        #expect(TunnelProtocol.of(Self.hello(name)) == .tls(serverName: nil))
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
}
