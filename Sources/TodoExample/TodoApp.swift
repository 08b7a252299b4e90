import HttpWareClient

/// A todo app without a face: logs in, lists, adds, finishes; its token wears out, its network goes away. Each step shows what
/// every ware did. `swift run TodoExample`.
@main
struct TodoApp {
    @MainActor
    static func main() async throws {
        let server = try TodoServer()
        let records = RecordRing(mostRecords: 100, mostBytes: .mebibytes(1))
        let service = NetworkedTodoService.make(
            ServiceDefinition(
                baseURL: "https://todo.example.com", environments: [.development: try BaseUrl(server.url)]
            ).using(.development),
            user: "ada", store: MemoryTokenStore(), records: records)
        let model = TodoListModel(service: service)

        await show("the first list: one token is asked for, the request waits", model, records) { await model.load() }
        await show("the same list again: not modified", model, records) { await model.load() }
        await show("one more todo", model, records) { await model.add("feed the cat") }
        await show("the token wore out: renewed, and the request sent again", model, records) {
            await model.finish(model.todos[0])
        }
        await show("the list has changed", model, records) { await model.load() }
        await server.stop()
        await show("offline: the last list", model, records) { await model.load() }
        await show("offline: what cannot be done is said", model, records) { await model.add("sleep") }
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
