import FoundationEssentials

/// Sends routes. A service that depends on this protocol instead of a manager can be tested without one.
///
/// ```swift
/// struct TodoService { let http: any HttpSending }
/// ```
///
/// In a test, another type can answer:
///
/// ```swift
/// struct Answers: HttpSending {
///     func send<R: Route>(_ route: R) async throws -> R.Response {
///         guard let todos = [Todo(id: 1, title: "test")] as? R.Response else { throw HttpError(.status(.notFound)) }
///         return todos
///     }
/// }
/// ```
///
/// A test that looks at the options of calls, such as a time limit, implements `send(_:with:)`, too. `response(of:)`, `stream`,
/// `download` and `events` use the values of `send` by default; a test that needs more implements them.
public protocol HttpSending: Sendable {
    /// Sends the route, and returns its response.
    @discardableResult
    func send<R: Route>(_ route: R) async throws -> R.Response

    /// Sends the route with options, and returns its response. By default, as without options.
    @discardableResult
    func send<R: Route>(_ route: R, with options: [CallOption]) async throws -> R.Response

    /// Sends the route, and returns the response with its decoded value. By default, 200 with the value of `send`.
    func response<R: Route>(of route: R, with options: [CallOption]) async throws -> ModelResponse<R.Response>

    /// Sends the route, and returns when the response's head has arrived. By default, 200 with the value of `send` as its content:
    /// text and bytes as they are, and other values as JSON.
    func stream<R: Route>(_ route: R, with options: [CallOption]) async throws -> StreamedResponse

    /// Downloads the route's response into a file. By default, the content of `stream` goes there as a whole.
    @discardableResult
    func download<R: Route>(
        _ route: R, to path: String, with options: [CallOption], progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws -> Download
}

extension HttpSending {
    @discardableResult
    public func send<R: Route>(_ route: R, with options: [CallOption]) async throws -> R.Response {
        try await send(route)
    }

    /// Sends the route with options, and returns its response.
    @discardableResult
    public func send<R: Route>(_ route: R, _ options: CallOption...) async throws -> R.Response {
        try await send(route, with: options)
    }

    public func response<R: Route>(
        of route: R, with options: [CallOption]
    ) async throws -> ModelResponse<R.Response> {
        ModelResponse(try await send(route, with: options))
    }

    /// Sends the route, and returns the response with its decoded value.
    public func response<R: Route>(
        of route: R, _ options: CallOption...
    ) async throws -> ModelResponse<R.Response> {
        try await response(of: route, with: options)
    }

    public func stream<R: Route>(_ route: R, with options: [CallOption]) async throws -> StreamedResponse {
        let value = try await send(route, with: options)
        return StreamedResponse(HttpResponse(.ok), bytes: try StreamedResponse.content(of: value))
    }

    /// Sends the route, and returns when the response's head has arrived.
    public func stream<R: Route>(_ route: R, _ options: CallOption...) async throws -> StreamedResponse {
        try await stream(route, with: options)
    }

    @discardableResult
    public func download<R: Route>(
        _ route: R, to path: String, with options: [CallOption],
        progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws -> Download {
        let response = try await stream(route, with: options)
        let bytes = try await response.bytes.collect(upTo: .gibibytes(1))
        do {
            try Data(bytes).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw HttpError(.client, .fileFailed, .checking, "\(path) cannot be written: \(error)", underlying: error)
        }
        progress?(TransferProgress(direction: .received, bytes: bytes.count, total: bytes.count))
        return Download(response: response.response, path: path, bytes: bytes.count)
    }

    /// Downloads the route's response into a file.
    @discardableResult
    public func download<R: Route>(
        _ route: R, _ options: CallOption..., to path: String,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> Download {
        try await download(route, to: path, with: options, progress: progress)
    }

    /// The route's response, or the error. Does not throw.
    public func result<R: Route>(of route: R, _ options: CallOption...) async -> Result<R.Response, HttpError> {
        await result(of: route, with: options)
    }

    /// The route's response, sent with options, or the error. Does not throw.
    public func result<R: Route>(of route: R, with options: [CallOption]) async -> Result<R.Response, HttpError> {
        do {
            return .success(try await send(route, with: options))
        } catch let error as HttpError {
            return .failure(error)
        } catch is CancellationError {
            return .failure(
                HttpError(.client, .cancelled, .sending, "the task was cancelled", underlying: CancellationError())
                    .about("\(R.self)"))
        } catch {
            return .failure(HttpError(.chain, .exchange(.internalError), .sending, "\(error)", underlying: error))
        }
    }
}

extension HttpManager: HttpSending {
    /// Sends the route with options, and returns its response.
    @discardableResult
    public func send<R: Route>(_ route: R, with options: [CallOption]) async throws -> R.Response {
        try await sending(route, options).model()
    }

    /// Sends the route with options, and returns the response with its decoded value.
    public func response<R: Route>(
        of route: R, with options: [CallOption]
    ) async throws -> ModelResponse<R.Response> {
        let sending = try sending(route, options)
        let model = try await sending.model()
        return try sending.response(model)
    }

    /// Sends the route with options, and returns when the response's head has arrived.
    public func stream<R: Route>(_ route: R, with options: [CallOption]) async throws -> StreamedResponse {
        try await sending(route, options, streams: true).stream()
    }

    /// Downloads the route's response into a file, with options.
    @discardableResult
    public func download<R: Route>(
        _ route: R, to path: String, with options: [CallOption],
        progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws -> Download {
        try await download(try request(route, options), to: path, progress: progress)
    }
}

extension RequestQueue: HttpSending {
    /// Sends the route with options when its turn comes, and returns its response.
    @discardableResult
    public func send<R: Route>(_ route: R, with options: [CallOption]) async throws -> R.Response {
        try await take(try manager.request(route, options)).model
    }

    /// Sends the route with options when its turn comes, and returns the response with its decoded value.
    public func response<R: Route>(
        of route: R, with options: [CallOption]
    ) async throws -> ModelResponse<R.Response> {
        try await take(try manager.request(route, options))
    }

    /// Sends the route when its turn comes, and returns when the response's head has arrived. The request then counts no longer.
    public func stream<R: Route>(_ route: R, with options: [CallOption]) async throws -> StreamedResponse {
        let request = try manager.request(route, options)
        return try await run(priority: request.priority, tags: request.tags) { [manager] in
            try await manager.stream(request)
        }
    }

    /// Downloads the route's response into a file when its turn comes.
    @discardableResult
    public func download<R: Route>(
        _ route: R, to path: String, with options: [CallOption],
        progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws -> Download {
        let request = try manager.request(route, options)
        return try await run(priority: request.priority, tags: request.tags) { [manager] in
            try await manager.download(request, to: path, progress: progress)
        }
    }
}

extension StreamedResponse {
    /// The bytes of a value: text and bytes as they are, and other values as JSON.
    static func content(of value: some Sendable) throws -> [UInt8] {
        switch value {
        case is NoContent: return []
        case let raw as RawContent: return raw.bytes
        case let text as String: return Array(text.utf8)
        case let data as Data: return Array(data)
        case let value as any Encodable: return try JsonCoder().encode(value)
        default:
            throw HttpError(
                .client, .invalidRequest, .making, "\(type(of: value)) has no bytes; implement stream(_:with:)")
        }
    }
}
