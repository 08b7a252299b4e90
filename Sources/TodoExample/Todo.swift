/// Something to do.
struct Todo: Codable, Sendable, Equatable {
    var id: Int
    var title: String
    var isDone = false
}
