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
/// A test that looks at the options of calls, such as a time limit, implements `send(_:with:)`, too.
public protocol HttpSending: Sendable {
    /// Sends the route, and returns its response.
    @discardableResult
    func send<R: Route>(_ route: R) async throws -> R.Response

    /// Sends the route with options, and returns its response. By default, as without options.
    @discardableResult
    func send<R: Route>(_ route: R, with options: [CallOption]) async throws -> R.Response
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

    /// The route's response, or the error. Does not throw.
    public func result<R: Route>(of route: R) async -> Result<R.Response, HttpError> {
        do {
            return .success(try await send(route))
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
}

extension RequestQueue: HttpSending {
    /// Sends the route with options when its turn comes, and returns its response.
    @discardableResult
    public func send<R: Route>(_ route: R, with options: [CallOption]) async throws -> R.Response {
        try await take(try manager.request(route, options)).model
    }
}
