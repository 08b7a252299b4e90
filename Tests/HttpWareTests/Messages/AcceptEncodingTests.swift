import Testing

@testable import HttpWare

@Suite struct AcceptEncodingTests {
    private func read(_ lines: [String]) -> AcceptEncoding {
        var accepted = AcceptEncoding()
        for line in lines { Array(line.utf8).withUnsafeBytes { accepted.add($0) } }
        return accepted
    }

    @Test(
        arguments: [
            (["gzip"], .gzip), (["gzip, br, zstd"], .zstd), (["br;q=1.0, gzip;q=0.8, *;q=0.1"], .br), (["*"], .zstd),
            (["zstd;q=0, *"], .br), (["gzip;q=0.5, zstd;q=0.4"], .gzip), (["GZIP"], .gzip), (["x-gzip"], .gzip),
            ([" \tgzip ; q=0.001\t"], .gzip), (["gzip;Q=1"], .gzip), (["deflate", "br"], .br),
            (["gzip,,br;q=1.000"], .br),
            (["identity;q=0.5, gzip"], .gzip), (["identity, gzip"], .gzip), (["identity;q=0"], nil),
            ([""], nil), ([], nil), (["identity"], nil), (["gzip;q=0"], nil), (["gzip;q=0.000"], nil), (["*;q=0"], nil),
            (["identity, gzip;q=0.5"], nil), (["deflate, compress"], nil), (["gzip;q=0, gzip"], nil),
        ] as [([String], ContentCoding?)])
    func `the most wanted coding is used, of several the first offered - RFC 9110 §12.5.3`(
        lines: [String], expected: ContentCoding?
    ) { #expect(read(lines).best(of: [.zstd, .br, .gzip]) == expected) }

    @Test(arguments: [
        "gzip;q=", "gzip;q=2", "gzip;q=1.001", "gzip;q=0.1234", "gzip;q=.5", "gzip;q=-1", "gzip;q=1;x=y",
        "gzip;level=1", "gzip;",
        "gzip;q=0,5", "gzi p", "gzip q=1", "gzip;q=1.0.", "gzip;q=1 0",
    ])
    func `a malformed value is not acceptable - RFC 9110 §12.4.2`(line: String) {
        #expect(read([line]).best(of: [.gzip]) == nil)
        #expect(read([line, "br"]).best(of: [.gzip, .br]) == .br)
    }

    @Test(arguments: [
        ("", true), ("gzip", true), ("identity;q=0", false), ("*;q=0", false), ("*;q=0, identity", true),
        ("identity;q=0, *", false), ("identity;q=0.001", true),
    ])
    func `content may come as it is unless that is excluded - RFC 9110 §12.5.3`(line: String, expected: Bool) {
        #expect(read([line]).acceptsIdentity == expected)
    }

    @Test func `only codings that are offered are used`() {
        #expect(read(["zstd, br;q=0.5"]).best(of: [.br, .gzip]) == .br)
        #expect(read(["zstd"]).best(of: []) == nil)
    }
}
