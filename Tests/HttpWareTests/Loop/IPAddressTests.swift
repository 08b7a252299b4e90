import Testing

@testable import HttpWare

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"), ("::", "::"),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("fe80::1%7", "fe80::1%7"), ("fe80::1%lo", "fe80::1%1"),
    ])
    func `an address is read and written as RFC 5952 says`(text: String, written: String) throws {
        #expect(try #require(IPAddress(text)).description == written)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "0x7f.0.0.1", "127.1", "1.2.3.4 ", "1.2.3.4\u{0}", "01.2.3.4",
        ":::", "1::2::3", "[::1]", "::1%", "::1%nosuchinterface", "fe80::1%0", "example.com", "1.2.3.4%1",
    ])
    func `any other text is not an address`(text: String) { #expect(IPAddress(text) == nil) }

    @Test(arguments: [
        "127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255",
        "192.168.0.1", "169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.8", "198.18.0.1", "198.19.255.255",
        "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::2", "fc00::1", "fdff::1",
        "fe80::1", "fe80::1%1", "febf::1", "fec0::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
        "::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::1", "2002:0a00:0001::1",
        "2002:7f00:1::", "2001:0:0a00:1::", "2001:0:808:808:0:0:80ff:fffe", "100::1", "0:0:0:0:1::",
    ])
    func `an address that is not global is private`(text: String) throws {
        #expect(try #require(IPAddress(text)).isPrivate)
    }

    @Test(arguments: [
        "8.8.8.8", "1.1.1.1", "11.0.0.1", "9.255.255.255", "172.15.255.255", "172.32.0.1", "192.167.0.1",
        "192.169.0.1", "169.253.0.1", "169.255.0.1", "100.63.255.255", "100.128.0.1", "198.17.255.255", "198.20.0.1",
        "223.255.255.255", "126.255.255.255", "128.0.0.1", "203.0.113.7", "192.0.2.1", "192.0.1.1",
        "2606:4700::1111", "2001:db8::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
        "2002:0808:0808::1", "2001:0:808:808::f7f7:f7f7", "fbff::1", "fe00::1",
    ])
    func `a global address is not`(text: String) throws { #expect(try !#require(IPAddress(text)).isPrivate) }

    @Test(arguments: [
        "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "169.254.170.2", "169.254.170.23",
        "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
    ])
    func `metadata addresses of clouds are known, and private`(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.isMetadata && address.isPrivate)
    }

    @Test(arguments: ["127.0.0.1", "169.254.169.253", "10.0.0.1", "8.8.8.8", "::1", "fd00:ec2::1", "64:ff9b::8.8.8.8"])
    func `other addresses are not metadata addresses`(text: String) throws {
        #expect(try !#require(IPAddress(text)).isMetadata)
    }

    @Test func `loopback and unspecified are known, mapped too`() throws {
        for text in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            #expect(try #require(IPAddress(text)).isLoopback)
        }
        for text in ["128.0.0.1", "::", "::2", "::ffff:10.0.0.1", "1::1"] {
            #expect(try !#require(IPAddress(text)).isLoopback)
        }
        for text in ["0.0.0.0", "::", "::ffff:0.0.0.0"] { #expect(try #require(IPAddress(text)).isUnspecified) }
        #expect(try !#require(IPAddress("0.0.0.1")).isUnspecified)
        #expect(try #require(IPAddress("::ffff:1.2.3.4")).unmapped == IPAddress("1.2.3.4"))
    }
}

@Suite struct IPNetworkTests {
    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"), ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("192.168.4.0/22", "192.168.7.255", "192.168.8.0"), ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("192.0.2.1/32", "::ffff:192.0.2.1", "::192.0.2.1"), ("fc00::/7", "fdff::1", "fe00::1"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"), ("2001:db8::/64", "2001:db8::ffff:1", "2001:db8:0:1::"),
        ("2001:db8::8000:0:0:0/65", "2001:db8::8000:0:0:1", "2001:db8::1"), ("::1", "::1", "::2"),
        ("::/0", "ffff::1", "1.2.3.4"), ("::ffff:10.0.0.0/104", "10.1.2.3", "::ffff:11.0.0.1"),
        ("::ffff:0:0/96", "1.2.3.4", "::1.2.3.4"),
    ])
    func `a network holds what shares its prefix`(network: String, member: String, other: String) throws {
        let network = try #require(IPNetwork(network))
        #expect(network.contains(try #require(IPAddress(member))))
        #expect(!network.contains(try #require(IPAddress(other))))
        #expect(IPNetwork(network.description) == network)
    }

    @Test func `a network of IPv4-mapped addresses is that of the IPv4 addresses`() {
        #expect(IPNetwork("::ffff:10.0.0.0/104") == IPNetwork("10.0.0.0/8"))
        #expect(IPNetwork("::ffff:192.0.2.1") == IPNetwork("192.0.2.1"))
        #expect(IPNetwork("::ffff:10.0.0.1/104") == nil)
    }

    @Test(arguments: [
        "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8 ", "10.0.0.1/8", "10/8",
        "::/129",
        "2001:db8::1/32", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0", "fe80::1%1/128", "10.0.0.0/0008",
    ])
    func `any other text is not a network`(text: String) { #expect(IPNetwork(text) == nil) }
}

@Suite struct SocketAddressTests {
    @Test(arguments: [
        ("192.0.2.1:80", "192.0.2.1:80"), ("[::1]:8080", "[::1]:8080"), ("[fe80::1%1]:1", "[fe80::1%1]:1"),
        ("unix:/run/app.sock", "unix:/run/app.sock"), ("0.0.0.0:65535", "0.0.0.0:65535"),
    ])
    func `an address is read and written`(text: String, written: String) throws {
        let address = try #require(SocketAddress(text))
        #expect(address.description == written)
        let read = address.withSystemAddress { SocketAddress($0, length: Int($1)) }
        #expect(read == address)
    }

    @Test(arguments: ["192.0.2.1", "192.0.2.1:80", "::1", "[::1]", "[::1]:80", "unix:/x"])
    func `a default port may stand for a missing one`(text: String) throws {
        #expect([80, nil].contains(try #require(SocketAddress(text, defaultPort: 80)).port))
    }

    @Test(arguments: [
        "", "192.0.2.1", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:-1", "192.0.2.1:+1", "::1:80", "[::1]", "[::1]80",
        "[::1", "[192.0.2.1]:80", "example.com:80", ":80", "unix:", "unix:/\u{0}",
        "unix:/" + String(repeating: "x", count: 107),
    ])
    func `any other text is not an address`(text: String) { #expect(SocketAddress(text) == nil) }

    @Test func `the parts are at hand`() throws {
        let address = try #require(SocketAddress("127.0.0.1:80"))
        #expect(address.port == 80 && address.isLoopback && address.isPrivate)
        #expect(address.with(port: 81).port == 81)
        let path = SocketAddress.unix(path: "/x")
        #expect(path.port == nil && path.address == nil && path.isLoopback && path.isPrivate)
        #expect(path.with(port: 81) == path)
    }
}
