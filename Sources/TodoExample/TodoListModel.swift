/// The model of a view. It uses the service's protocol, and is independent of the network.
@MainActor
final class TodoListModel {
    private(set) var todos: [Todo] = []
    private(set) var message: String?
    private let service: any TodoService

    init(service: any TodoService) { self.service = service }

    func load() async {
        do {
            todos = try await service.todos()
            message = nil
        } catch {
            message = "could not load: \(error)"
        }
    }

    func add(_ title: String) async {
        do {
            todos.append(try await service.add(title))
            message = nil
        } catch {
            message = "could not add \(title): \(error)"
        }
    }

    func finish(_ todo: Todo) async {
        do {
            try await service.finish(todo)
            for index in todos.indices where todos[index].id == todo.id { todos[index].isDone = true }
            message = nil
        } catch {
            message = "could not finish \(todo.title): \(error)"
        }
    }

    func importMore() async {
        do {
            let (others, unreadable) = try await service.imported()
            todos += others
            message = unreadable == 0 ? nil : "\(unreadable) could not be read; \(text)"
        } catch {
            message = "could not import: \(error)"
        }
    }

    func clear() async {
        do {
            try await service.clear()
            todos = []
            message = nil
        } catch {
            message = "could not clear: \(error)"
        }
    }

    /// The list as text.
    var text: String {
        todos.isEmpty ? "nothing to do" : todos.map { "[\($0.isDone ? "x" : " ")] \($0.title)" }.joined(separator: ", ")
    }
}
