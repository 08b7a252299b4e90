public import HttpWare

/// A ware that holds requests, for `/v1/holds/LABEL/open` and `close` of the admin listener.
public protocol HoldGate: Ware {
    /// Whether the configuration lets operators open and close it.
    var isManual: Bool { get }
    /// Whether requests are held at the moment.
    var isClosed: Bool { get }
    /// The number of requests that are held.
    var heldCount: Int { get }
    /// Holds requests from now on, or releases the held ones and holds no more. Safe to call from any thread.
    func setClosed(_ isClosed: Bool)
}
