import Foundation
import HttpWareClient
import HttpWareTesting
import Testing

@testable import TodoExample

@Suite struct TutorialTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The code without white space, which the formatter settles.
    private static func bare(_ text: some StringProtocol) -> String { String(text.filter { !$0.isWhitespace }) }

    private static func compiled() throws -> [String] {
        let folders = ["Sources/TodoExample", "Tests/HttpWareClientTests/Example"]
        return try folders.flatMap { folder in
            try FileManager.default.contentsOfDirectory(
                at: root.appending(path: folder), includingPropertiesForKeys: nil
            )
            .filter { $0.pathExtension == "swift" }.map { try bare(String(contentsOf: $0, encoding: .utf8)) }
        }
    }

    @Test(arguments: [
        "BuildingATodoApp.md", "CachingInAnApp.md", "Errors.md", "HttpWareClient.md", "OtherLibraries.md",
        "ServersAndConnections.md", "Streams.md", "Testing.md", "TokensAndLoggingOut.md", "WaresInSwift.md",
    ])
    func `each block of code in an article stands in what is compiled`(article: String) throws {
        let text = try String(
            contentsOf: TutorialTests.root.appending(path: "Sources/HttpWareClient/HttpWareClient.docc/\(article)"),
            encoding: .utf8)
        let blocks = text.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(!blocks.isEmpty)
        let files = try TutorialTests.compiled()
        for block in blocks {
            let isCompiled = files.contains { $0.contains(TutorialTests.bare(block)) }
            #expect(isCompiled, "\(article): \(block)")
        }
    }

    @Test func `the example's service is tested without a network`() async throws {
        let client = ScriptedClient()
        client.answerCall(json: #"{"accessToken":"a","refreshToken":"r","expiresIn":60}"#)
        client.answerCall(json: #"[{"id":1,"title":"test","isDone":false}]"#)
        let service = NetworkedTodoService.make(
            ServiceDefinition(baseURL: "https://todo.example.com"), user: "ada", store: MemoryTokenStore(),
            client: client)
        #expect(try await service.todos() == [TodoExample.Todo(id: 1, title: "test")])
        #expect(client.requests.map(\.path) == ["/token", "/todos"])
        #expect(client.requests.last?.fields[.authorization] == "Bearer a")
    }

    @MainActor
    @Test func `a view model knows the service's protocol only`() async {
        struct Fixed: TodoService {
            struct Broken: Error {}
            func todos() async throws -> [TodoExample.Todo] { [TodoExample.Todo(id: 1, title: "a")] }
            func add(_ title: String) async throws -> TodoExample.Todo { throw Broken() }
            func finish(_ todo: TodoExample.Todo) async throws {}
            func imported() async throws -> (todos: [TodoExample.Todo], unreadable: Int) { ([], 1) }
            func clear() async throws { throw Broken() }
        }
        let model = TodoListModel(service: Fixed())
        await model.load()
        await model.finish(model.todos[0])
        #expect(model.text == "[x] a")
        await model.add("b")
        #expect(model.message == "could not add b: Broken()")
        await model.importMore()
        #expect(model.message == "1 could not be read; [x] a")
        await model.clear()
        #expect(model.message == "could not clear: Broken()")
    }

    /// The record of one exchange, counted from 1: it is kept when that has ended, which may be a moment after its answer.
    private static func report(_ number: Int, of records: RecordRing) async throws -> ExchangeReport {
        while records.recent(100).count < number { await Task.yield() }
        return ExchangeReport(try #require(records.recent(1).first))
    }

    @Test func `the example lives through a worn-out token, 304 and a lost network`() async throws {
        let server = try TodoServer()
        let records = RecordRing(mostRecords: 100, mostBytes: .mebibytes(1))
        let service = NetworkedTodoService.make(
            ServiceDefinition(baseURL: try BaseUrl(server.url)), user: "ada", store: MemoryTokenStore(),
            records: records)
        let first = try await service.todos()
        #expect(try await service.todos() == first)
        let cached = try await TutorialTests.report(2, of: records)
        #expect(cached.wares.contains { $0.ware == "HttpCache" && $0.decision == "validated" })
        let added = try await service.add("feed the cat")
        try await service.finish(added)
        let replayed = try await TutorialTests.report(4, of: records)
        #expect(replayed.replays == 1 && replayed.status == 204)
        let last = try await service.todos()
        #expect(last.last?.isDone == true)
        await server.stop()
        #expect(try await service.todos() == last)
        await #expect(throws: HttpError.self) { try await service.add("sleep") }
        #expect(try await TutorialTests.report(7, of: records).status == 502)
        #expect(ExchangeTable(report: cached).text.contains("validated"))
    }
}
