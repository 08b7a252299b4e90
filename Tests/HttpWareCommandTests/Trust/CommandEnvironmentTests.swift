import Testing

@testable import HttpWareCommand

@Suite struct CommandEnvironmentTests {
    private let trusting = CommandEnvironment(
        host: "127.0.0.1", port: 1234, files: CommandEnvironment.Files(folder: "/tmp/f"), isTrusting: true)
    private let tunnelling = CommandEnvironment(
        host: "127.0.0.1", port: 1234, files: CommandEnvironment.Files(folder: "/tmp/f"), isTrusting: false)

    @Test func `the proxy is named in every spelling, and nothing else of the user's is touched`() {
        let changed = tunnelling.variables([
            "PATH": "/bin", "http_proxy": "http://old:1", "ALL_PROXY": "socks5://old:2", "SSL_CERT_FILE": "/own.pem",
        ])
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            #expect(changed[name] == "http://127.0.0.1:1234")
        }
        #expect(changed["PATH"] == "/bin" && changed["SSL_CERT_FILE"] == "/own.pem")
        #expect(changed["NO_PROXY"] == "" && changed["no_proxy"] == "")
    }

    @Test(arguments: [["NO_PROXY": "intern.example"], ["no_proxy": "intern.example"]])
    func `hosts that were left out stay so, in both spellings`(environment: [String: String]) {
        let changed = trusting.variables(environment)
        #expect(changed["NO_PROXY"] == "intern.example")
        #expect(changed["no_proxy"] == "intern.example")
        #expect(changed["JAVA_TOOL_OPTIONS"]?.contains("-Dhttp.nonProxyHosts=intern.example|*.intern.example ") == true)
    }

    @Test
    func `variables that replace the roots name the bundle, and variables that add to them name the authority alone`() {
        let changed = trusting.variables([:])
        for name in CommandEnvironment.replacing { #expect(changed[name] == "/tmp/f/bundle.pem", "\(name)") }
        for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "HTTPLIB2_CA_CERTS"] {
            #expect(changed[name] == "/tmp/f/bundle.pem", "\(name)")
        }
        #expect(changed["NODE_EXTRA_CA_CERTS"] == "/tmp/f/ca.pem" && changed["DENO_CERT"] == "/tmp/f/ca.pem")
        #expect(changed["npm_config_cafile"] == "/tmp/f/bundle.pem" && changed["NPM_CONFIG_CAFILE"] == nil)
        #expect(changed["ALL_PROXY"] == changed["HTTPS_PROXY"] && changed["all_proxy"] == changed["https_proxy"])
        #expect(changed["CURL_HOME"] == nil)
    }

    @Test func `where the user added certificates, the bundle that contains them stands in for the authority alone`() {
        let changed = trusting.variables(["NODE_EXTRA_CA_CERTS": "/own.pem", "NPM_CONFIG_CAFILE": "/npm.pem"])
        #expect(changed["NODE_EXTRA_CA_CERTS"] == "/tmp/f/bundle.pem" && changed["DENO_CERT"] == "/tmp/f/ca.pem")
        #expect(changed["NPM_CONFIG_CAFILE"] == "/tmp/f/bundle.pem")
    }

    @Test func `certificates are found in the files of npm, wget and curl, in each of their forms`() {
        #expect(
            CommandEnvironment.npmCertificates("registry=x\n cafile = \"/a b.pem\" \n;cafile=/no\n#cafile=/no") == [
                "/a b.pem"
            ])
        #expect(
            CommandEnvironment.wgetCertificates("ca-certificate=/w.pem\nCA_certificate = /v.pem\nca=1") == [
                "/w.pem", "/v.pem",
            ])
        let curl =
            "cacert=/1.pem\n--cacert /2.pem\ncacert: \"/3.pem\"\n# cacert = /no\ncacertx = /no\ncapath /no\ncacert"
        #expect(CommandEnvironment.curlCertificates(curl) == ["/1.pem", "/2.pem", "/3.pem"])
    }

    @Test func `a user's options of curl are kept, and ours come last`() {
        let text = trusting.curlText("cacert = /own.pem\nuser-agent = x")
        #expect(
            text == "cacert = /own.pem\nuser-agent = x\ncacert = \"/tmp/f/bundle.pem\"\nproxy = \"\(trusting.proxy)\"\n"
        )
        var owner = trusting
        owner.own.curl = "/home/a/.curlrc"
        #expect(owner.variables([:])["CURL_HOME"] == "/tmp/f")
    }

    @Test func `a proxy that reads no tunnels leaves every certificate variable alone`() {
        let user = ["SSL_CERT_FILE": "/own.pem", "WGETRC": "/wget", "APT_CONFIG": "/apt", "NODE_EXTRA_CA_CERTS": "/n"]
        let changed = tunnelling.variables(user)
        for (name, value) in user { #expect(changed[name] == value) }
        for name in CommandEnvironment.replacing where user[name] == nil { #expect(changed[name] == nil) }
        #expect(changed["JAVA_TOOL_OPTIONS"]?.contains("trustStore") == false)
    }

    @Test func `options are appended, never replaced`() {
        let changed = trusting.variables(["NODE_OPTIONS": "--max-old-space-size=99", "JAVA_TOOL_OPTIONS": "-Xmx1g"])
        #expect(changed["NODE_OPTIONS"] == #"--max-old-space-size=99 --require "/tmp/f/proxy.cjs""#)
        #expect(changed["JAVA_TOOL_OPTIONS"]?.hasPrefix("-Xmx1g -Dhttp.proxyHost=127.0.0.1 ") == true)
        #expect(trusting.variables([:])["NODE_OPTIONS"] == #"--require "/tmp/f/proxy.cjs""#)
    }

    @Test func `a folder with spaces, quotes and backslashes is quoted for Node and for Java`() {
        let odd = CommandEnvironment(
            host: "[::1]", port: 1, files: CommandEnvironment.Files(folder: #"/t a"b\c"#), isTrusting: true)
        let changed = odd.variables([:])
        #expect(changed["NODE_OPTIONS"] == #"--require "/t a\"b\\c/proxy.cjs""#)
        #expect(changed["JAVA_TOOL_OPTIONS"]?.contains("-Dhttp.proxyHost=::1 ") == true)
        let spaced = CommandEnvironment(
            host: "h", port: 1, files: CommandEnvironment.Files(folder: "/t a"), isTrusting: true)
        #expect(
            spaced.variables([:])["JAVA_TOOL_OPTIONS"]?.contains(#""-Djavax.net.ssl.trustStore=/t a/java.p12""#) == true
        )
    }

    @Test(arguments: [
        ("", ""), ("*", "*"), (".example.com", "*.example.com"), ("*.example.com", "*.example.com"),
        ("a.test, 10.0.0.1", "a.test|*.a.test|10.0.0.1|*.10.0.0.1"), ("10.0.0.0/8,b.test:80,[::1]", "[::1]|*.[::1]"),
    ])
    func `NO_PROXY in Java's form`(left: String, expected: String) {
        #expect(CommandEnvironment.javaHosts(left) == expected)
    }

    @Test func `the user's lines for wget and apt come first`() {
        #expect(trusting.wgetText("user_agent = x").hasPrefix("user_agent = x\nca_certificate = /tmp/f/bundle.pem\n"))
        #expect(trusting.aptText("A \"b\";\n") == "A \"b\";\nAcquire::https::CaInfo \"/tmp/f/bundle.pem\";\n")
        #expect(trusting.aptText("").hasPrefix("Acquire"))
    }

    @Test func `the certificates of a wgetrc are found in every spelling`() {
        let text = "# ca_certificate = /no\nca_certificate=/a.pem\n CA-Certificate = /b c.pem \ncacertificate =/d\n"
        #expect(CommandEnvironment.wgetCertificates(text) == ["/a.pem", "/b c.pem", "/d"])
    }

    @Test func `the last trust store of Java's options is found, with its password`() throws {
        let store = try #require(
            CommandEnvironment.javaStore(
                "-Djavax.net.ssl.trustStore=/a -Djavax.net.ssl.trustStorePassword=p \"-Djavax.net.ssl.trustStore=/b\""))
        #expect(store.path == "/b" && store.password == "p")
        #expect(CommandEnvironment.javaStore("-Xmx1g") == nil)
        #expect(CommandEnvironment.javaStore("-Djavax.net.ssl.trustStore=/c")?.password == "changeit")
    }
}
