import Foundation
import HttpWare
import Testing

@testable import HttpWareCommand

@Suite struct WarePackageTests {
    private static let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The repository builds and tests these files, as the targets GatewayExample and GatewayExampleTests.
    @Test func `the Swift files are those of the example that the repository builds`() throws {
        let package = WarePackage(ware: "methodRule", program: "gateway-example")
        var compared = 0
        for file in package.files where file.path.hasPrefix("Sources/") || file.path.hasPrefix("Tests/") {
            let place = WarePackageTests.repository.appending(path: file.path)
            #expect(try String(contentsOf: place, encoding: .utf8) == file.text, "\(file.path)")
            compared += 1
        }
        #expect(compared == 3)
    }

    @Test func `a package has everything to build, test, run and ship a gateway`() throws {
        let package = try WarePackage.named(ware: "tenantPath", program: "my-gateway")
        let texts = Dictionary(uniqueKeysWithValues: package.files.map { ($0.path, $0.text) })
        #expect(
            texts.keys.sorted() == [
                ".dockerignore", ".gitignore", "Dockerfile", "Makefile", "Package.swift", "README.md",
                "Sources/MyGateway/MyGateway.swift", "Sources/MyGateway/TenantPath.swift",
                "Tests/MyGatewayTests/TenantPathTests.swift", "httpware.yaml",
            ])
        let manifest = try #require(texts["Package.swift"])
        #expect(manifest.contains(#".package(url: "\#(WarePackage.url)", from: "\#(ProgramVersion.text)""#))
        for name in ["Makefile", "Dockerfile"] {
            #expect(
                texts[name]?.contains("-c release") == true
                    && texts[name]?.contains("-Xswiftc -enforce-exclusivity=unchecked") == true)
        }
        #expect(texts["httpware.yaml"]?.contains("- tenantPath: { allow: [GET, HEAD] }") == true)
        #expect(texts["README.md"]?.split(separator: "\n", omittingEmptySubsequences: false).count ?? 99 <= 21)
        for (path, text) in texts {
            #expect(!text.contains("methodRule") && !text.contains("MethodRule") && text.hasSuffix("\n"), "\(path)")
        }
    }

    @Test func `the article shows the code and the configuration of the package`() throws {
        let article = try String(
            contentsOf: WarePackageTests.repository.appending(
                path: "Sources/HttpGateway/HttpGateway.docc/OwnGateway.md"),
            encoding: .utf8)
        let package = try WarePackage.named(ware: "methodRule", program: "my-gateway")
        var blocks = 0
        for match in article.matches(of: /(?ms)^```(?:swift|yaml)\n(.*?)^```$/) {
            #expect(package.files.contains { $0.text.contains(match.1) }, "\(match.1)")
            blocks += 1
        }
        #expect(blocks == 4)
        for file in package.files where file.path.hasPrefix("Sources") || file.path.hasPrefix("Tests") {
            #expect(article.contains("| `\(file.path)` |"))
        }
    }

    @Test func `the package names every C library, and no name of a module is left for a program`() throws {
        let manifest = try String(
            contentsOf: WarePackageTests.repository.appending(path: "Package.swift"), encoding: .utf8)
        let article = try String(
            contentsOf: WarePackageTests.repository.appending(
                path: "Sources/HttpGateway/HttpGateway.docc/OwnGateway.md"),
            encoding: .utf8)
        // Only the client uses libpsl.
        let libraries = manifest.matches(of: /\.apt\(\["([^"]+)"\]\)/).map { String($0.1) }.filter {
            $0 != "libpsl-dev"
        }
        #expect(
            libraries.count > 10
                && Set(libraries).isSubset(of: WarePackage.packages.split(separator: " ").map(String.init)))
        #expect(article.contains("apt-get install \(WarePackage.packages)\n"))
        let modules = manifest.matches(of: /\.(?:target|executableTarget|systemLibrary)\(\s*name: "(\w+)"/)
        #expect(modules.count > 40)
        for module in modules { #expect(WarePackage.usedModules.contains(module.1.lowercased()), "\(module.1)") }
    }

    @Test func `the package gets httpware from where the articles say that it is`() throws {
        let article = WarePackageTests.repository.appending(
            path: "Sources/HttpWareClient/HttpWareClient.docc/HttpWareClient.md")
        #expect(try String(contentsOf: article, encoding: .utf8).contains(#".package(url: "\#(WarePackage.url)","#))
    }

    @Test(arguments: [
        ("MethodRule", "such as methodRule"), ("method-rule", "such as methodRule"),
        ("method rule", "such as methodRule"),
        ("", "such as methodRule"), ("9lives", "such as methodRule"), ("größe", "such as"),
        ("bodyLimit", "is a built-in ware"),
        ("if", "has another meaning"), ("string", "has another meaning"), ("exchange", "has another meaning"),
        ("self", "has another meaning"), ("error", "has another meaning"), ("../x", "such as x"), ("a/b", "such as aB"),
    ])
    func `a name that no ware can have is refused, with the reason`(name: String, reason: String) {
        let problem = #expect(throws: WarePackage.Problem.self) {
            try WarePackage.named(ware: name, program: "my-gateway")
        }
        #expect(problem?.text.contains(reason) == true, "\(problem?.text ?? "")")
    }

    @Test(arguments: [
        "", "My-Gateway", "my gateway", "-x", "x-", "1x", "../x", "wares", "httpware", "gateway-example", "testing",
        "method-rule",
    ])
    func `a name that no program of a package can have is refused`(name: String) {
        #expect(throws: WarePackage.Problem.self) { try WarePackage.named(ware: "methodRule", program: name) }
    }
}
