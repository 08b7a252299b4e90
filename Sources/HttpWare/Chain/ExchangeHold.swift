/// What a request waits for without a task, until it is let go or its time is over: for waits that thousands have at once.
///
/// A ware makes one and returns `.wait(for: hold) { request, exchange in … }`. The request stays where it is, and the closure decides on
/// the loop of the exchange when the hold has ended.
///
/// Unchecked: a subclass guards what it adds; all else is touched on the loop of its exchange only.
open class ExchangeHold: @unchecked Sendable {
    private let loop: EventLoop
    /// How long it holds.
    let limit: Duration
    /// Whose request it holds; `nil` before it does, and when that is over.
    var holder: (any HoldHolder)?
    /// What decides about the request then.
    var then: ((inout HttpRequest, Exchange) throws -> Verdict)?

    /// Holds the request of this exchange for no longer than that.
    public init(in exchange: Exchange, for limit: Duration) {
        loop = exchange.loop
        self.limit = limit
    }

    /// Ends the hold. From any thread; calls after the first one do nothing.
    public final func letGo() { loop.execute { self.holder?.ended(self) } }

    /// Its time is over. Called on the loop, before the closure decides.
    open func timedOut() {}

    /// Nobody waits any more: the client left, or a deadline came. The closure is not asked. Called on the loop.
    open func givenUp() {}
}

/// The driver, as a hold knows it.
protocol HoldHolder: AnyObject {
    /// The hold has ended, if it is one that is waited for.
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
