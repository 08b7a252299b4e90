/// A wait without a task, until it is let go or its time limit passes: for waits of thousands of requests at once.
///
/// A ware makes a hold and returns `.wait(for: hold) { request, exchange in … }`. The request stays in place, and the closure decides
/// on the loop of the exchange when the hold has ended.
///
/// Unchecked: a subclass guards its own state; everything else is used on the loop of its exchange only.
open class ExchangeHold: @unchecked Sendable {
    private let loop: EventLoop
    /// The longest time that it holds.
    let limit: Duration
    /// The holder of the request; `nil` before the hold begins and after it ends.
    var holder: (any HoldHolder)?
    /// Decides about the request when the hold has ended.
    var then: ((inout HttpRequest, Exchange) throws -> Verdict)?

    /// Holds the request of this exchange for at most `limit`.
    public init(in exchange: Exchange, for limit: Duration) {
        loop = exchange.loop
        self.limit = limit
    }

    /// Ends the hold. Safe to call from any thread; calls after the first do nothing.
    public final func letGo() { loop.execute { self.holder?.ended(self) } }

    /// The time limit has passed. Called on the loop, before the closure decides.
    open func timedOut() {}

    /// The wait was abandoned: the client left, or a deadline passed. The closure is not called. Called on the loop.
    open func givenUp() {}
}

/// The driver's interface for a hold.
protocol HoldHolder: AnyObject {
    /// The hold has ended; ignored if the exchange does not wait for it.
    func ended(_ hold: ExchangeHold)
}

extension Verdict {
    /// Waits without a task: `then` decides on the loop of the exchange when the hold has ended.
    public static func wait(
        for hold: ExchangeHold, then: @escaping (inout HttpRequest, Exchange) throws -> Verdict
    ) -> Verdict {
        hold.then = then
        return .wait(Continuing(hold))
    }
}
