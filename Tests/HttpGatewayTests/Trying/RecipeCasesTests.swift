import Foundation
import GatewayConfig
import GatewayWares
import HttpWare
import Testing

@testable import HttpGateway

/// The cases of the recipes, in Tests/Articles/cases, against the files as the article shows them.
@Suite struct RecipeCasesTests {
    /// A file of a recipe; its name is the title of the section, with a number for a further file.
    struct Recipe: CustomTestStringConvertible, Sendable {
        let name: String
        let text: String

        var testDescription: String { name }

        static let all: [Recipe] = {
            let article = (try? Repository.article("Recipes.md")) ?? ""
            return article.components(separatedBy: "\n## ").dropFirst().flatMap { section in
                let title = section.components(separatedBy: "\n")[0]
                return CodeBlock.all("yaml", in: section).enumerated().map { index, block in
                    Recipe(name: index == 0 ? title : "\(title) (\(index + 1))", text: block.text)
                }
            }
        }()
    }

    /// The recipe whose keys are in a file of the reader's home.
    private static let without = ["A bucket for programs without AWS keys"]

    /// The variables and the files that readers of the recipes make.
    private static let environment = [
        "API_CLIENT_ID": "a", "API_CLIENT_SECRET": "b",
        "SIGNING_SECRET": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
    ]

    private func makeFolder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-recipe-\(UUID().uuidString)")
        let page = folder.appending(path: "public")
        try FileManager.default.createDirectory(at: page, withIntermediateDirectories: true)
        try "the app\n".write(to: page.appending(path: "index.html"), atomically: true, encoding: .utf8)
        try Repository.text("conf/wares/keys.txt")
            .write(to: folder.appending(path: "keys.txt"), atomically: true, encoding: .utf8)
        try Repository.text("conf/wares/orders.har")
            .write(to: folder.appending(path: "api.har"), atomically: true, encoding: .utf8)
        let token = folder.appending(path: "api-token")
        try "a-secret-token".write(to: token, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: token.path)
        return folder
    }

    @Test func `each recipe has cases, and each file of cases has a recipe`() throws {
        let place = Repository.root.appending(path: "Tests/Articles/cases")
        let files = try FileManager.default.contentsOfDirectory(atPath: place.path).map {
            $0.replacing(".test.yaml", with: "")
        }
        #expect(Set(files) == Set(Recipe.all.map(\.name)).subtracting(Self.without))
    }

    @Test(arguments: Recipe.all.filter { !without.contains($0.name) })
    func `the cases of a recipe pass`(recipe: Recipe) throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let configuration = folder.appending(path: "httpware.yaml").path
        try recipe.text.write(toFile: configuration, atomically: true, encoding: .utf8)
        let runner = CaseRunner {
            ConfigurationReader(wares: BuiltinWares.all, stores: StandInStores.all, environment: Self.environment)
                .read(path: configuration)
        }
        #expect(runner.configuration().errors.filter { $0.severity == .error } == [])
        let path = Repository.root.appending(path: "Tests/Articles/cases/\(recipe.name).test.yaml").path
        let read = CaseFile.read(path: path, environment: [:])
        #expect(read.errors == [])
        for one in try #require(read.file).cases {
            let outcome = runner.run(one)
            #expect(outcome.hasPassed, "\(CaseReport.text(outcome))")
        }
    }
}
