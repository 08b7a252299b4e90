public import HttpWare

/// A ware whose mode people set while the gateway runs: `/v1/offline` of the admin listener finds it by this.
public protocol OfflineSwitch: Ware {
    /// The mode that is configured, and what is set in its place. The same one for as long as the ware lives.
    var state: OfflineState { get }
}

/// When requests are answered from stored responses only.
public enum OfflineMode: String, OptionWord, Sendable {
    /// When the origin server cannot be reached.
    case auto
    /// Each.
    case always
    /// None.
    case never
}
