import Foundation
import GatewayConfig
import GatewayWares
import HttpWare
import Testing

@testable import HttpGateway

/// The cases of the repository: those of the examples pass, and those of the articles have the right form.
@Suite struct CaseExamplesTests {
    /// The example of TLS lacks its certificate, which Tests/Cases makes.
    private static let incomplete = ["conf/tls.yaml"]

    /// Without the examples of single wares, whose cases Tests/Cases runs with and without the ware.
    private static let examples = Repository.configurations.filter { !$0.hasPrefix("conf/wares/") }

    private func cases(of path: String) throws -> CaseFile {
        let place = Repository.root.appendingPathComponent(CaseFile.path(beside: path)).path
        let read = CaseFile.read(path: place, environment: [:])
        #expect(read.errors == [])
        return try #require(read.file, "\(path) has no cases")
    }

    @Test(arguments: examples.filter { !incomplete.contains($0) })
    func `the cases of an example pass`(path: String) throws {
        let place = Repository.root.appendingPathComponent(path).path
        let runner = CaseRunner {
            ConfigurationReader(wares: BuiltinWares.all, stores: StandInStores.all, environment: [:]).read(path: place)
        }
        for one in try cases(of: path).cases {
            let outcome = runner.run(one)
            #expect(outcome.hasPassed, "\(CaseReport.text(outcome))")
        }
    }

    @Test(arguments: incomplete) func `the cases of an example that needs more files have the right form`(path: String)
        throws
    {
        #expect(try !cases(of: path).cases.isEmpty)
    }

    @Test func `the cases in the article have the right form`() throws {
        let blocks = CodeBlock.all("yaml", in: try Repository.article("TestingAConfiguration.md"))
        #expect(blocks.count > 3)
        for block in blocks {
            let files = ConfigurationFiles(read: { _, _ in Array(block.text.utf8) }, list: { _ in [] })
            let read = CaseFile.read(path: "article", environment: [:], files: files)
            #expect(read.errors.map(\.description) == [], "\(block)")
        }
    }
}
