import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct OwnHostTests {
    private func answer(_ path: String, proxy: SocketAddress? = SocketAddress("192.0.2.1:3128")) throws -> HttpResponse
    {
        OwnHost.answer(to: path, try InterceptStage.authority.get(), proxy: proxy)
    }

    private func text(_ response: HttpResponse) -> String {
        String(decoding: response.content.bytes ?? [], as: UTF8.self)
    }

    @Test(arguments: [
        ("http://httpware.proxy/", true), ("http://HTTPware.proxy./x", true), ("http://httpware.proxy:80/", true),
        ("http://httpware.proxy:8080/", false), ("https://httpware.proxy/", true),
        ("https://httpware.proxy:80/", false),
        ("http://httpware.prox/", false), ("http://xttpware.proxy/", false),
    ])
    func `the proxy's own host has one name and the default ports`(url: String, isOwn: Bool) {
        #expect(OwnHost.isNamed(by: HttpRequest.get(url).target) == isOwn)
    }

    @Test func `the certificate is offered in each form, and nothing else exists`() throws {
        let authority = try InterceptStage.authority.get()
        for (path, content) in [
            ("/ca.pem", authority.pem), ("/ca.der", authority.der), ("/ca.crt", authority.der),
            ("/ca.cer", authority.der),
        ] {
            let response = try answer(path)
            #expect(response.status == .ok && response.content.bytes == content, "\(path)")
        }
        #expect(text(try answer("/")).contains(authority.fingerprint))
        #expect(!text(try answer("/")).contains("@"), "a placeholder is left")
        for path in ["/x", "/ca.key", "/../ca.key", ""] { #expect(try answer(path).status == .notFound, "\(path)") }
    }

    @Test func `proxy.pac names the address at which the client came, if it has a port`() throws {
        #expect(text(try answer("/proxy.pac")).contains("PROXY 192.0.2.1:3128"))
        #expect(try answer("/proxy.pac", proxy: nil).status == .notFound)
    }
}
