public import HttpWare

/// A ware whose hold people open and close: `/v1/holds/LABEL/open` and `close` of the admin listener find it by this.
public protocol HoldGate: Ware {
    /// Whether people can open and close it, as configured.
    var isManual: Bool { get }
    /// Whether requests are held at the moment.
    var isClosed: Bool { get }
    /// How many are.
    var heldCount: Int { get }
    /// Holds requests from now on, or lets those that wait, and all others, go. From any thread.
    func setClosed(_ isClosed: Bool)
}
