/// The host name at which an intercepting listener answers by itself: with a page that offers the authority's certificate.
///
/// It exists only through the proxy: no resolver knows the name. The page needs no script and no resource from elsewhere.
public enum OwnHost {
    /// The host, in lower case.
    public static let name = "httpware.proxy"

    /// The host as bytes, for comparisons that allocate nothing.
    static let nameBytes = Array(name.utf8)

    /// Whether a request's target is on this host.
    static func isNamed(by target: RequestTarget) -> Bool {
        guard target.form != .authority, target.bytes[target.host.range].elementsEqual(nameBytes) else { return false }
        return target.port == nil || target.port == (target.isSecure ? 443 : 80)
    }

    /// The response to a request for a path. `proxy` is the address at which the client reached the listener.
    static func answer(to path: String, _ authority: CertificateAuthority, proxy: SocketAddress?) -> HttpResponse {
        switch path {
        case "/", "/index.html":
            return response("text/html; charset=utf-8", .text(page(authority)))
        // RFC 7468: the registered type for PEM certificates is for chains, RFC 8555 §9.1. Browsers save this one as a file.
        case "/ca.pem":
            return response("application/x-pem-file", .bytes(authority.pem), file: "httpware-ca.pem")
        // RFC 2585 §4.
        case "/ca.der":
            return response("application/pkix-cert", .bytes(authority.der), file: "httpware-ca.der")
        // Phones and browsers offer to install an authority served with this type.
        case "/ca.crt", "/ca.cer":
            return response("application/x-x509-ca-cert", .bytes(authority.der), file: "httpware-ca.crt")
        case "/proxy.pac":
            guard let proxy, proxy.port != nil else { return missing }
            let text = "function FindProxyForURL(url, host) {\n  return \"PROXY \(proxy)\";\n}\n"
            return response("application/x-ns-proxy-autoconfig", .text(text))
        default: return missing
        }
    }

    private static var missing: HttpResponse {
        var response = response("text/plain; charset=utf-8", .text("The proxy has no such page; see http://\(name)/\n"))
        response.status = .notFound
        return response
    }

    private static func response(_ type: String, _ content: HttpContent, file: String? = nil) -> HttpResponse {
        var response = HttpResponse(.ok, content: content)
        var lines = [
            ("Content-Type", type), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"), ("Content-Security-Policy", policy),
        ]
        if let file { lines.append(("Content-Disposition", "attachment; filename=\"\(file)\"")) }
        for (name, value) in lines {
            guard let name = FieldName(name) else { continue }
            response.fields.setOwn(name, value)
        }
        return response
    }

    // MARK: The page

    /// Nothing is loaded and no script runs; the page's own style is allowed by its digest. CSP Level 3 §6.7.3.3.
    private static let policy: String = {
        var style = OwnHost.style
        let digest = style.withUTF8 { Digest256(of: UnsafeRawBufferPointer($0)) }
        return "default-src 'none'; style-src 'sha256-\(Base64.encode(digest.bytes))'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'"
    }()

    private static func page(_ authority: CertificateAuthority) -> String {
        pageText.replacing("@STYLE@", with: style).replacing("@SUBJECT@", with: HtmlText.escaped(authority.subject))
            .replacing("@FINGERPRINT@", with: authority.fingerprint)
    }

    private static let style = """
        :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
        body { max-width: 46em; margin: 0 auto; padding: 1em; overflow-wrap: anywhere; }
        code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
        pre { overflow: auto; padding: .6em; border: 1px solid #8886; border-radius: .4em; }
        .files a { display: inline-block; margin: 0 .6em .6em 0; padding: .4em .8em; border: 1px solid; border-radius: .4em; }
        summary { cursor: pointer; font-weight: 600; padding: .3em 0; }
        """

    private static let pageText = """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>httpware: the proxy's certificate</title>
        <style>@STYLE@</style>
        </head>
        <body>
        <h1>This proxy reads TLS</h1>
        <p>Your requests go through a proxy on which somebody runs httpware. It shows certificates of its own for the hosts that you
        visit, and programs refuse them until they trust the authority below. A person who has the authority's key can read the TLS of every
        program that trusts it: install it only if this proxy is yours, or if you trust the person who runs it.</p>
        <p class="files"><a href="/ca.crt">Certificate (.crt)</a><a href="/ca.pem">Certificate (.pem)</a><a href="/ca.der">Certificate (.der)</a><a href="/proxy.pac">proxy.pac</a></p>
        <p>Name: <code>@SUBJECT@</code><br>SHA-256: <code>@FINGERPRINT@</code><br>Compare it with the output of <code>httpware ca show</code> on the proxy's machine: this page came without encryption.</p>
        <h2>How to trust it</h2>
        <p>On the proxy's own machine, <code>httpware ca install</code> does all of this, and <code>httpware ca uninstall</code> removes it again.</p>
        <details><summary>macOS</summary><pre>sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain httpware-ca.pem</pre></details>
        <details><summary>iPhone and iPad</summary><p>Open <a href="/ca.crt">the certificate</a> in Safari and allow the download. Install it in Settings &gt; General &gt; VPN &amp; Device Management, then turn it on in Settings &gt; General &gt; About &gt; Certificate Trust Settings.</p></details>
        <details><summary>Android</summary><p>Download <a href="/ca.crt">the certificate</a>, then choose it in Settings &gt; Security &gt; Encryption &amp; credentials &gt; Install a certificate &gt; CA certificate. Apps trust it only if their network security configuration allows user certificates.</p></details>
        <details><summary>Windows</summary><pre>certutil -addstore -user Root httpware-ca.crt</pre></details>
        <details><summary>Debian, Ubuntu</summary><pre>sudo cp httpware-ca.pem /usr/local/share/ca-certificates/httpware-ca.crt
        sudo update-ca-certificates</pre></details>
        <details><summary>Fedora</summary><pre>sudo cp httpware-ca.pem /etc/pki/ca-trust/source/anchors/
        sudo update-ca-trust extract</pre></details>
        <details><summary>Firefox</summary><p>Settings &gt; Privacy &amp; Security &gt; View Certificates &gt; Authorities &gt; Import; choose to trust it for websites.</p></details>
        <details><summary>Java</summary><pre>keytool -importcert -cacerts -storepass changeit -noprompt -alias httpware -file httpware-ca.pem</pre></details>
        <details><summary>Node, Python, curl and git, for one shell</summary><pre>export NODE_EXTRA_CA_CERTS=$PWD/httpware-ca.pem
        cat /etc/ssl/certs/ca-certificates.crt httpware-ca.pem &gt; bundle.pem
        export SSL_CERT_FILE=$PWD/bundle.pem REQUESTS_CA_BUNDLE=$PWD/bundle.pem CURL_CA_BUNDLE=$PWD/bundle.pem GIT_SSL_CAINFO=$PWD/bundle.pem</pre></details>
        </body>
        </html>

        """
}
