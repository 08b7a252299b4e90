/// A task on the list.
struct Todo: Codable, Sendable, Equatable {
    var id: Int
    var title: String
    var isDone = false
}
