public import HttpWareClient

#if canImport(Combine)
    public import Combine
#elseif Publishers
    public import OpenCombine
#else
    #error(
        "publishers need the trait Publishers of the package httpware: it is on by default, and traits: [] turns it off"
    )
#endif

extension HttpManager {
    /// Publishes the response of the route. Each subscriber causes one request; without a subscriber nothing is sent.
    /// If a subscriber cancels, the exchange ends. A demand of zero delays the value, not the request.
    public func publisher<R: Route>(for route: R, _ options: CallOption...) -> AnyPublisher<R.Response, HttpError> {
        Deferred {
            let answer = PendingAnswer<R.Response>()
            let task = Task.detached { answer.takeResult(await self.result(of: route, with: options)) }
            return answer.future.handleEvents(receiveCancel: { task.cancel() })
        }.eraseToAnyPublisher()
    }
}

/// An answer that arrives once.
///
/// Unchecked: `promise` is set before the object is shared, and a `Future` guards itself.
private final class PendingAnswer<Value: Sendable>: @unchecked Sendable {
    let future: Future<Value, HttpError>
    private let promise: (Result<Value, HttpError>) -> Void

    init() {
        var promise: ((Result<Value, HttpError>) -> Void) = { _ in }
        // The closure is called before the initialiser returns.
        future = Future { promise = $0 }
        self.promise = promise
    }

    func takeResult(_ result: Result<Value, HttpError>) { promise(result) }
}
