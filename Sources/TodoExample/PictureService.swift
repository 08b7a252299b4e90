import HttpWareClient

/// The pictures of todos, which are large and not urgent.
protocol PictureService: Sendable {
    /// Uploads a file.
    func attach(_ path: String, to todo: Todo) async throws
    /// The pictures of these todos. Todos without a picture are left out.
    func pictures(of todos: [Todo]) async throws -> [[UInt8]]
    /// Cancels running and waiting downloads of pictures, for example on a weak connection.
    func stop()
}

/// The service over the network. It sends at most two requests at a time, after other requests of the queue.
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
    /// The tag of requests that can be delayed or cancelled.
    static let pictures: RequestTag = "pictures"
}
