/// A ware that is told when the exchange has ended: only then its bytes, its duration and its end are known.
///
/// Cheaper than `Exchange.onEnd`, for no closure is made. Any ware of a chain may be one.
public protocol ExchangeObserver: Ware {
    /// Called once, on the exchange's loop, after the exchange ended: completed, cut off, or left by the client. For each
    /// entry of the joined chain whose condition holds; a client that left has no response, so there only what the
    /// condition says about the request counts, and `exchange.finalStatus` is `nil`.
    ///
    /// `exchange.request` holds the request as it went upstream, and in its fields those received.
    func ended(_ exchange: Exchange)
}
