import Foundation
import GatewayConfig
import HttpGateway
import HttpWare
import Testing
import GatewayWares

/// The examples of the repository are accepted by the program.
@Suite struct ExamplesTests {
    @Test(arguments: Repository.configurations.filter { !["conf/tls.yaml", "conf/agent.yaml"].contains($0) })
    func `an example under conf is read without errors or warnings`(path: String) throws {
        let result = ConfigurationReader(wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:])
            .read(path: Repository.root.appendingPathComponent(path).path)
        #expect(result.errors.map(\.description).isEmpty)
        #expect(result.configuration != nil)
    }

    /// Its certificate is made by the reader: the protocol suite does that, and runs it.
    @Test func `the example of TLS lacks its certificate and nothing else`() {
        let errors = ConfigurationReader(wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:])
            .read(path: Repository.root.appendingPathComponent("conf/tls.yaml").path).errors
        #expect(errors.allSatisfy { $0.description.contains("no such file") || $0.description.contains("localhost.") })
    }

    /// Its authority is made by the reader: the protocol suite does that, and runs it.
    @Test func `the example of a sandbox lacks its authority and nothing else`() {
        let errors = ConfigurationReader(wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:])
            .read(path: Repository.root.appendingPathComponent("conf/agent.yaml").path).errors
        #expect(errors.allSatisfy { $0.description.contains("certificate authority") })
    }

    @Test(arguments: Repository.wareNames)
    func `each built-in ware has an example that names it`(name: String) throws {
        let text = try Repository.text("conf/wares/\(name).yaml")
        let ware = try #require(BuiltinWares.all.first { $0.name.text == name })
        #expect(text.hasPrefix("# \(name) (\(WareDescription(ware).side.rawValue)): "), "says what it is")
        #expect(text.contains("- \(name):") || text.contains("- \(name)\n") || text.contains("{ \(name):"))
    }

    @Test(arguments: [
        "Configuration.md", "Wares.md", "WaresByPurpose.md", "WritingAWare.md", "Admin.md", "Access.md", "Caching.md",
        "Files.md", "FirstGateway.md", "ComingFrom.md",
    ])
    func `a whole configuration in an article is read without errors or warnings`(article: String) throws {
        for block in CodeBlock.all("yaml", in: try Repository.article(article)) where block.text.hasPrefix("version:") {
            #expect(mistakes(in: block.text).isEmpty, "\(article), \(block)")
        }
    }

    @Test func `each chain in the article about wares is read without errors or warnings`() throws {
        let chains = CodeBlock.all("yaml", in: try Repository.article("Wares.md")).filter {
            $0.text.hasPrefix("middlewares:") || $0.text.hasPrefix("postwares:")
        }
        #expect(chains.count >= Repository.wareNames.count)
        for chain in chains { #expect(mistakes(in: configuration(around: chain.text)).isEmpty, "\(chain)") }
    }

    @Test(arguments: Repository.wareNames)
    func `the article about wares names every option and shows an example`(name: String) throws {
        let ware = try #require(BuiltinWares.all.first { $0.name.text == name })
        let sections = try Repository.article("Wares.md").components(separatedBy: "\n## ")
        let section = try #require(sections.first { $0.hasPrefix("\(name)\n") }, "no section")
        var options = OptionsReader.describing()
        _ = ware.init(options: &options)
        for option in options.described where option.type != "options" && !option.key.contains("[]") {
            #expect(section.contains("| `\(option.key)` |"), "\(option.key)")
        }
        #expect(CodeBlock.all("yaml", in: section).contains { $0.text.contains("- \(name)") })
    }

    @Test(arguments: [
        ("gzip", ["compress"]), ("cache", ["httpCache"]), ("header", ["requestHeaders", "responseHeaders"]),
        ("headers", ["requestHeaders", "responseHeaders"]),
        ("auth", ["apiKey", "basicAuth", "extAuthz", "introspect", "jwt"]),
        ("forwardAuth", ["extAuthz"]), ("static", ["files"]), ("ratelimit", ["rateLimit"]),
        ("CORS", ["cors"]), ("proxy_set_header", ["requestHeaders"]), ("bodyLimits", ["bodyLimit"]), ("nonsense", []),
    ])
    func `an unknown ware's error names the wares that it could mean`(name: String, meant: [String]) {
        let quoted = meant.map { "\"\($0)\"" }
        let names =
            quoted.count > 1
            ? quoted.dropLast().joined(separator: ", ") + " or " + quoted[quoted.count - 1] : quoted.first
        let text = configuration(around: "middlewares:\n  - \(name)")
        #expect(
            mistakes(in: text).map { String($0.split(separator: "error: ")[1]) }
                == ["\(name): is not a ware" + (names.map { "; did you mean \($0)?" } ?? "")])
    }

    @Test func `the article about wares is what the wares declare`() throws {
        let article = try Repository.article("Wares.md")
        #expect(article == WareReference(BuiltinWares.all).article, "make reference writes it anew")
    }

    @Test func `the README names only wares that are there`() throws {
        let names = BuiltinWares.all.map { $0.name.text }
        let lines = try Repository.text("README.md").components(separatedBy: "\n")
        let start = try #require(lines.firstIndex(of: "| purpose | wares |"), "no table")
        var named: [String] = []
        for line in lines[(start + 2)...] {
            guard line.hasPrefix("|") else { break }
            for (place, part) in line.components(separatedBy: "`").enumerated() where place % 2 == 1 {
                named.append(part)
            }
        }
        #expect(named.sorted() == names.sorted())
    }

    @Test(arguments: Repository.wareNames)
    func `the article about purposes names each ware in a table`(name: String) throws {
        let lines = try Repository.article("WaresByPurpose.md").components(separatedBy: "\n")
        #expect(lines.contains { $0.hasPrefix("|") && $0.contains("`\(name)`") })
    }

    @Test func `a relative path is relative to the file that writes it`() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: directory) }
        let inner = directory.appendingPathComponent("conf.d")
        try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
        let main = """
            version: 1
            include: conf.d/chain.yaml
            listeners: { web: { bind: "127.0.0.1:8080", chain: pages } }
            routes: [{ chain: mocks, with: { mock: { file: main.html } } }]
            log: { output: "file:main.log" }
            """
        let chains = """
            chains:
              pages: { postwares: [{ errorPage: { file: page.html } }, { accessLog: { output: "file:none/access.log" } }] }
              mocks: { middlewares: [{ mock: { file: inner.html } }] }
            """
        try main.write(to: directory.appendingPathComponent("httpware.yaml"), atomically: true, encoding: .utf8)
        try chains.write(to: inner.appendingPathComponent("chain.yaml"), atomically: true, encoding: .utf8)
        func read() -> ConfigurationReader.Result {
            ConfigurationReader(wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:])
                .read(path: directory.appendingPathComponent("httpware.yaml").path)
        }
        let missing = read().errors.map(\.message)
        for path in ["main.html", "conf.d/page.html", "conf.d/inner.html", "conf.d/none"] {
            #expect(missing.contains { $0.contains("\"\(directory.path)/\(path)\"") }, "\(path): \(missing)")
        }
        for path in ["main.html", "conf.d/page.html", "conf.d/inner.html"] {
            try path.write(to: directory.appendingPathComponent(path), atomically: true, encoding: .utf8)
        }
        try FileManager.default.createDirectory(
            at: inner.appendingPathComponent("none"), withIntermediateDirectories: true)
        let result = read()
        #expect(result.errors == [])
        #expect(result.configuration?.log.output == .file("\(directory.path)/main.log"))
    }

    // MARK: Reading

    private func mistakes(in text: String, wares: [any ConfigurableWare.Type] = BuiltinWares.all) -> [String] {
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: wares + [MethodRule.self], stores: GatewayStores.all, environment: [:], files: files
        )
        .read(path: "article")
        return result.errors.map(\.description)
    }

    private func configuration(around chain: String) -> String {
        let indented = chain.split(separator: "\n").map { "    \($0)\n" }.joined()
        let credential = #"{ grant: clientCredentials, tokenUrl: "https://a.example/t", clientId: a, clientSecret: b }"#
        let credentials = chain.contains("orders-oauth") ? "credentials: { orders-oauth: \(credential) }" : ""
        let shadow = chain.contains("service: shadow") ? #", shadow: { baseUrl: "http://127.0.0.1:3001" }"# : ""
        return """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://127.0.0.1:3000" }\(shadow) }
            routes: [{ service: api, chain: example }]
            \(credentials)
            chains:
              example:
            \(indented)
            """
    }
}
