import FoundationEssentials
import HttpWareClient

/// A todo app without a user interface: it logs in, and lists, adds and finishes todos. Its token expires, and its network
/// fails. Each step shows what every ware did. `swift run TodoExample`.
@main
struct TodoApp {
    @MainActor
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "todo-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let picture = folder.appending(path: "cat.png").path
        try Data(repeating: 0x20, count: 2000).write(to: URL(filePath: picture))

        let server = try TodoServer()
        let records = RecordRing(mostRecords: 100, mostBytes: .mebibytes(1))
        let times = RouteTimes()
        let service = NetworkedTodoService.make(
            try ServiceDefinition(
                baseURL: "https://todo.example.com", environments: [.development: BaseUrl(server.url)]
            ).using(.development),
            user: "ada", store: FileTokenStore(path: folder.appending(path: "tokens.json").path), times: times,
            records: records,
            askForCode: {
                print("  a code is asked for: 123456")
                return "123456"
            })
        let model = TodoListModel(service: service)
        let pictures = NetworkedPictureService(service.manager)

        await show("the first list: one token is asked for, the request waits", model, records) { await model.load() }
        await show("the same list again: not modified", model, records) { await model.load() }
        await show("one more todo", model, records) { await model.add("feed the cat") }
        await show("the token wore out: renewed, and the request sent again", model, records) {
            await model.finish(model.todos[0])
        }
        await show("the list has changed", model, records) { await model.load() }
        await show("the todos of others: one of theirs cannot be read", model, records) { await model.importMore() }
        await show("pictures: a file is sent, and the stored ones come back", model, records) {
            do {
                try await pictures.attach(picture, to: model.todos[0])
                print("  bytes of each:", try await pictures.pictures(of: model.todos).map(\.count))
            } catch {
                print("  \(error)")
            }
        }
        await show("all of them go, which takes a second factor", model, records) { await model.clear() }
        await show("a new start", model, records) { await model.add("begin again") }
        await show("the list once more", model, records) { await model.load() }
        await server.stop()
        await show("offline: the last list", model, records) { await model.load() }
        await show("offline: what cannot be done is said", model, records) { await model.add("sleep") }
        print("\neach route took")
        for (route, time) in times.all { print("  \(route): \(time)") }
    }

    @MainActor
    private static func show(
        _ what: String, _ model: TodoListModel, _ records: RecordRing, _ step: () async -> Void
    ) async {
        let before = records.recent(1).first?.number ?? 0
        await step()
        print("\n\(what)\n  \(model.message ?? model.text)")
        for record in records.recent(10).reversed() where record.number > before {
            print(ExchangeTable(report: ExchangeReport(record)).text)
        }
    }
}
