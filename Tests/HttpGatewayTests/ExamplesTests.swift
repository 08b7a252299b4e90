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
        "Configuration.md", "ConfigurationFile.md", "ConfigurationListeners.md", "ConfigurationCertificates.md",
        "ConfigurationServices.md", "ConfigurationRoutes.md", "ConfigurationChains.md", "ConfigurationPaths.md",
        "ConfigurationForward.md", "ConfigurationStores.md", "ConfigurationRunning.md", "Commands.md",
        "Monitoring.md", "Containers.md", "WaresByPurpose.md", "WritingAWare.md", "Admin.md", "Access.md", "Caching.md",
        "Files.md", "FirstGateway.md", "ComingFrom.md",
    ])
    func `a whole configuration in an article is read without errors or warnings`(article: String) throws {
        for block in CodeBlock.all("yaml", in: try Repository.article(article)) where block.text.hasPrefix("version:") {
            #expect(mistakes(in: block.text).isEmpty, "\(article), \(block)")
        }
    }

    @Test(arguments: Repository.wareNames)
    func `the page of a ware names every option and shows an example without mistakes`(name: String) throws {
        let ware = try #require(BuiltinWares.all.first { $0.name.text == name })
        let page = try Repository.article("Wares/ware-\(name).md")
        var options = OptionsReader.describing()
        _ = ware.init(options: &options)
        for option in options.described where option.type != "options" && !option.key.contains("[]") {
            #expect(page.contains("| `\(option.key)` |"), "\(option.key)")
        }
        let chains = CodeBlock.all("yaml", in: page).filter {
            $0.text.hasPrefix("middlewares:") || $0.text.hasPrefix("postwares:")
        }
        #expect(chains.contains { $0.text.contains("- \(name)") })
        for chain in chains { #expect(mistakes(in: configuration(around: chain.text)).isEmpty, "\(chain)") }
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

    @Test func `the pages of wares are what the wares declare`() throws {
        let catalogue = Repository.root.appendingPathComponent("Sources/HttpGateway/HttpGateway.docc")
        func names(in folder: URL) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".md") }.sorted()
        }
        let articles = try names(in: catalogue).map {
            WareReference.Article(name: String($0.dropLast(3)), text: try Repository.article($0))
        }
        let files = WareReference(BuiltinWares.all, articles: articles).files
        for file in files {
            #expect(try Repository.article(file.path) == file.text, "make reference writes \(file.path) again")
        }
        let written = try names(in: catalogue.appendingPathComponent("Wares")).map { "Wares/\($0)" }
        #expect(written == files.map(\.path).filter { $0.contains("/") }.sorted())
    }

    @Test func `the page of a ware names its purposes, recipes, articles and related wares`() throws {
        let articles = [
            WareReference.Article(
                name: "WaresByPurpose",
                text:
                    "# By purpose\n\n## Limits\n\n| task | ware |\n|---|---|\n| too many | `rateLimit` |\n| too large | `bodyLimit` |\n"
            ),
            WareReference.Article(
                name: "Recipes",
                text: """
                    # Recipes

                    ## In flow form: one

                    ```yaml
                    chains: { a: { middlewares: [requestId, { rateLimit: { rate: 1/s } }] } }
                    ```

                    ## In a list

                    ```yaml
                    middlewares:
                      - bodyLimit: { max: 1MiB } # rateLimit
                      - if: rateLimit
                    ```
                    """),
            WareReference.Article(
                name: "Other", text: "# The other\n\nOf `files`, `timeout`, `timeout`, `timeout` and `rateLimit`.\n"),
        ]
        let reference = WareReference(BuiltinWares.all, articles: articles)
        let page = try #require(reference.page(of: "rateLimit"))
        #expect(page.contains("From <doc:WaresByPurpose>: too many (*Limits*).\n"))
        #expect(page.contains("- Recipes: [In flow form: one](doc:Recipes#In-flow-form-one)\n"))
        #expect(page.contains("- Articles: [The other](doc:Other)\n"))
        #expect(page.contains("## Related wares\n\n- [`bodyLimit`](doc:ware-bodyLimit): "))
        #expect(
            try #require(reference.page(of: "bodyLimit")).contains("- Recipes: [In a list](doc:Recipes#In-a-list)\n"))
        #expect(try !#require(reference.page(of: "files")).contains("- Articles:"), "once is not about it")
        #expect(try !#require(reference.page(of: "timeout")).contains("- Articles:"), "it is an option, too")
        #expect(reference.page(of: "none") == nil)
    }

    @Test func `the README names only wares that exist`() throws {
        let names = Set(BuiltinWares.all.map { $0.name.text })
        let text = try Repository.text("README.md")
        let pages = text.components(separatedBy: "HttpGateway.docc/Wares/ware-").dropFirst().map {
            $0.prefix { $0 != "." }
        }
        #expect(!pages.isEmpty)
        for page in pages { #expect(names.contains(String(page)), "\(page)") }
    }

    @Test(arguments: Repository.wareNames)
    func `the article about purposes names each ware in a table`(name: String) throws {
        let lines = try Repository.article("WaresByPurpose.md").components(separatedBy: "\n")
        #expect(lines.contains { $0.hasPrefix("|") && $0.contains("[`\(name)`](doc:ware-\(name))") })
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
