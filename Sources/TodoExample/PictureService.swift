import HttpWareClient

/// Pictures of todos: large, and not urgent.
protocol PictureService: Sendable {
    /// Sends a file.
    func attach(_ path: String, to todo: Todo) async throws
    /// The pictures of these todos; those that there are none of are left out.
    func pictures(of todos: [Todo]) async throws -> [[UInt8]]
    /// On a weak connection, say: pictures that are under way, or wait, are not wanted any more.
    func stop()
}

/// The service over the network: two at once, and after whatever else the queue is given.
struct NetworkedPictureService: PictureService {
    let queue: RequestQueue

    init(_ manager: HttpManager) { queue = RequestQueue(manager, maxConcurrent: 2) }

    func attach(_ path: String, to todo: Todo) async throws {
        let picture = AttachPicture(id: todo.id, file: try FileContent(path: path, contentType: "image/png"))
        _ = try await queue.send(picture, priority: .high)
    }

    func pictures(of todos: [Todo]) async throws -> [[UInt8]] {
        try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
            for todo in todos {
                group.addTask {
                    do {
                        return try await queue.send(GetPicture(id: todo.id), priority: .low).bytes
                    } catch let error as HttpError where error.status == .notFound {
                        return nil
                    }
                }
            }
            return try await group.reduce(into: []) { if let picture = $1 { $0.append(picture) } }
        }
    }

    func stop() { queue.cancelAll(tagged: .pictures) }
}

extension RequestTag {
    /// What can wait, and be done without.
    static let pictures: RequestTag = "pictures"
}
