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
public protocol HttpSending: Sendable {
    /// Sends the route, and returns its response.
    @discardableResult
    func send<R: Route>(_ route: R) async throws -> R.Response
}

extension HttpSending {
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

extension HttpManager: HttpSending {}
extension RequestQueue: HttpSending {}
