public import HttpWare

/// A ware whose mode can be changed while the gateway runs, by `/v1/offline` of the admin listener.
public protocol OfflineSwitch: Ware {
    /// The configured mode, and the override. The same object for the life of the ware.
    var state: OfflineState { get }
}

/// The condition under which requests are answered only from stored responses.
public enum OfflineMode: String, OptionWord, Sendable {
    /// While the origin server cannot be reached.
    case auto
    /// At all times.
    case always
    /// At no time.
    case never
}
